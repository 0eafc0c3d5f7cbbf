package main

import (
	"context"
	"net/http"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"
)

var messagesRequest = anthropic.MessageNewParams{
	Model:     "m",
	MaxTokens: 1,
	Messages:  []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock("?"))},
}

func anthropicClient(transport *http.Client) anthropic.Client {
	return anthropic.NewClient(
		option.WithAPIKey("key"), option.WithMaxRetries(0), option.WithHTTPClient(transport),
	)
}

// readMessages accumulates events with the client's own `Message.Accumulate`.
func readMessages(transport *http.Client) (answer, error) {
	client := anthropicClient(transport)
	stream := client.Messages.NewStreaming(context.Background(), messagesRequest)
	message := anthropic.Message{}
	for stream.Next() {
		if err := message.Accumulate(stream.Current()); err != nil {
			return answer{}, err
		}
	}
	if err := stream.Err(); err != nil {
		return answer{}, err
	}
	return ofMessage(message), nil
}

// readWholeMessages takes a message that was not streamed.
func readWholeMessages(transport *http.Client) (answer, error) {
	client := anthropicClient(transport)
	message, err := client.Messages.New(context.Background(), messagesRequest)
	if err != nil {
		return answer{}, err
	}
	return ofMessage(*message), nil
}

func ofMessage(message anthropic.Message) answer {
	usage := message.Usage
	input := usage.InputTokens + usage.CacheReadInputTokens + usage.CacheCreationInputTokens
	read := answer{
		Finish: string(message.StopReason), InputTokens: &input, OutputTokens: &usage.OutputTokens,
	}
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
	return read
}
