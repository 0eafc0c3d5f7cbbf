package main

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
)

func openaiClient(transport *http.Client) openai.Client {
	return openai.NewClient(
		option.WithAPIKey("key"), option.WithMaxRetries(0), option.WithHTTPClient(transport),
	)
}

// readChat accumulates chunks with the client's own accumulator.
func readChat(transport *http.Client) (answer, error) {
	var read answer
	client := openaiClient(transport)
	stream := client.Chat.Completions.NewStreaming(context.Background(), openai.ChatCompletionNewParams{
		Model:    "m",
		Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage("?")},
	})
	accumulator := openai.ChatCompletionAccumulator{}
	for stream.Next() {
		chunk := stream.Current()
		if !accumulator.AddChunk(chunk) {
			return read, errors.New("the accumulator refused a chunk")
		}
		// The accumulator keeps no members outside its types.
		for _, choice := range chunk.Choices {
			thinking := choice.Delta.JSON.ExtraFields["reasoning_content"].Raw()
			if thinking != "" {
				var text string
				if err := json.Unmarshal([]byte(thinking), &text); err != nil {
					return read, err
				}
				read.Thinking += text
			}
		}
		if chunk.JSON.Usage.Valid() {
			read.InputTokens = &accumulator.Usage.PromptTokens
			read.OutputTokens = &accumulator.Usage.CompletionTokens
		}
	}
	if err := stream.Err(); err != nil {
		return read, err
	}
	if len(accumulator.Choices) == 0 {
		return read, errNoAnswer
	}
	choice := accumulator.Choices[0]
	read.Text = choice.Message.Content + choice.Message.Refusal
	read.Finish = choice.FinishReason
	for _, one := range choice.Message.ToolCalls {
		read.Calls = append(read.Calls, call{
			ID: one.ID, Name: one.Function.Name, Text: one.Function.Arguments,
		})
	}
	return read, nil
}
