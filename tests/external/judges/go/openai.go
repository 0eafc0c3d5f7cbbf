package main

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/respjson"
)

var chatRequest = openai.ChatCompletionNewParams{
	Model:    "m",
	Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage("?")},
}

var streamedChatRequest = openai.ChatCompletionNewParams{
	Model:         chatRequest.Model,
	Messages:      chatRequest.Messages,
	StreamOptions: openai.ChatCompletionStreamOptionsParam{IncludeUsage: openai.Bool(true)},
}

func openaiClient(transport *http.Client) openai.Client {
	return openai.NewClient(
		option.WithAPIKey("key"), option.WithMaxRetries(0), option.WithHTTPClient(transport),
	)
}

// reasoning returns the thinking of a delta or a message: the client has no member for it.
func reasoning(extra map[string]respjson.Field) (string, error) {
	raw := extra["reasoning_content"].Raw()
	if raw == "" {
		return "", nil
	}
	var text string
	err := json.Unmarshal([]byte(raw), &text)
	return text, err
}

// readChat accumulates chunks with the client's own accumulator.
func readChat(transport *http.Client) (answer, error) {
	client := openaiClient(transport)
	stream := client.Chat.Completions.NewStreaming(context.Background(), streamedChatRequest)
	accumulator := openai.ChatCompletionAccumulator{}
	var thinking, spoken string
	var counted bool
	for stream.Next() {
		chunk := stream.Current()
		if !accumulator.AddChunk(chunk) {
			return answer{}, errors.New("the accumulator refused a chunk")
		}
		for _, choice := range chunk.Choices {
			text, err := reasoning(choice.Delta.JSON.ExtraFields)
			if err != nil {
				return answer{}, err
			}
			thinking += text
			// The accumulator leaves audio out.
			spoken += choice.Delta.Audio.Transcript
		}
		counted = counted || chunk.JSON.Usage.Valid()
	}
	if err := stream.Err(); err != nil {
		return answer{}, err
	}
	return ofCompletion(accumulator.ChatCompletion, thinking, spoken, counted)
}

// readWholeChat takes a completion that was not streamed.
func readWholeChat(transport *http.Client) (answer, error) {
	client := openaiClient(transport)
	completion, err := client.Chat.Completions.New(context.Background(), chatRequest)
	if err != nil {
		return answer{}, err
	}
	if len(completion.Choices) == 0 {
		return answer{}, errNoAnswer
	}
	thinking, err := reasoning(completion.Choices[0].Message.JSON.ExtraFields)
	if err != nil {
		return answer{}, err
	}
	spoken := completion.Choices[0].Message.Audio.Transcript
	return ofCompletion(*completion, thinking, spoken, completion.JSON.Usage.Valid())
}

func ofCompletion(
	completion openai.ChatCompletion, thinking, spoken string, counted bool,
) (answer, error) {
	if len(completion.Choices) == 0 {
		return answer{}, errNoAnswer
	}
	choice := completion.Choices[0]
	read := answer{
		Text:     choice.Message.Content + choice.Message.Refusal + spoken,
		Thinking: thinking,
		Finish:   choice.FinishReason,
	}
	if counted {
		read.InputTokens = &completion.Usage.PromptTokens
		read.OutputTokens = &completion.Usage.CompletionTokens
	}
	for _, one := range choice.Message.ToolCalls {
		if one.Type == "custom" {
			read.Calls = append(read.Calls, call{
				ID: one.ID, Name: one.Custom.Name, Text: one.Custom.Input, Free: true,
			})
			continue
		}
		read.Calls = append(read.Calls, call{
			ID: one.ID, Name: one.Function.Name, Text: one.Function.Arguments,
		})
	}
	return read, nil
}
