package main

import (
	"context"
	"net/http"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"
)

// readMessages accumulates events with the client's own `Message.Accumulate`.
func readMessages(transport *http.Client) (answer, error) {
	var read answer
	client := anthropic.NewClient(
		option.WithAPIKey("key"), option.WithMaxRetries(0), option.WithHTTPClient(transport),
	)
	stream := client.Messages.NewStreaming(context.Background(), anthropic.MessageNewParams{
		Model:     "m",
		MaxTokens: 1,
		Messages:  []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock("?"))},
	})
	message := anthropic.Message{}
	for stream.Next() {
		if err := message.Accumulate(stream.Current()); err != nil {
			return read, err
		}
	}
	if err := stream.Err(); err != nil {
		return read, err
	}
	usage := message.Usage
	input := usage.InputTokens + usage.CacheReadInputTokens + usage.CacheCreationInputTokens
	read.InputTokens = &input
	read.OutputTokens = &message.Usage.OutputTokens
	read.Finish = string(message.StopReason)
	for _, block := range message.Content {
		switch block := block.AsAny().(type) {
		case anthropic.TextBlock:
			read.Text += block.Text
		case anthropic.ThinkingBlock:
			read.Thinking += block.Thinking
		case anthropic.ToolUseBlock:
			read.Calls = append(read.Calls, call{
				ID: block.ID, Name: block.Name, Text: string(block.Input),
			})
		}
	}
	return read, nil
}
