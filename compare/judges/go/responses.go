package main

import (
	"context"
	"errors"
	"net/http"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/responses"
)

var errDeltas = errors.New("the deltas are not the final response")

// deltas is the text of all deltas of an answer, in the order of the items.
type deltas struct {
	text, thinking string
	inputs         map[int64]string
}

func (d *deltas) add(event responses.ResponseStreamEventUnion) {
	switch event.Type {
	case "response.output_text.delta", "response.refusal.delta":
		d.text += event.Delta
	case "response.reasoning_summary_text.delta":
		d.thinking += event.Delta
	case "response.function_call_arguments.delta", "response.custom_tool_call_input.delta":
		if d.inputs == nil {
			d.inputs = map[int64]string{}
		}
		d.inputs[event.OutputIndex] += event.Delta
	}
}

// readResponses takes the response of the terminal event: the client has no accumulator. The deltas,
// which a caller shows while they arrive, must give the same.
func readResponses(transport *http.Client) (answer, error) {
	var read answer
	client := openaiClient(transport)
	stream := client.Responses.NewStreaming(context.Background(), responses.ResponseNewParams{
		Model: "m",
		Input: responses.ResponseNewParamsInputUnion{OfString: openai.String("?")},
	})
	var last responses.ResponseStreamEventUnion
	var seen deltas
	for stream.Next() {
		last = stream.Current()
		seen.add(last)
	}
	if err := stream.Err(); err != nil {
		return read, err
	}
	if last.Type != "response.completed" && last.Type != "response.incomplete" {
		return read, errors.New("the last event is " + last.Type)
	}
	return seen.compared(last.Response)
}

// compared reads a response and compares it with the deltas.
func (d *deltas) compared(response responses.Response) (answer, error) {
	var read answer
	read.Finish = string(response.Status)
	if reason := response.IncompleteDetails.Reason; reason != "" {
		read.Finish = reason
	}
	if response.JSON.Usage.Valid() {
		read.InputTokens = &response.Usage.InputTokens
		read.OutputTokens = &response.Usage.OutputTokens
	}
	same := true
	for index, item := range response.Output {
		switch item := item.AsAny().(type) {
		case responses.ResponseOutputMessage:
			for _, part := range item.Content {
				read.Text += part.Text + part.Refusal
			}
		case responses.ResponseReasoningItem:
			for _, part := range item.Summary {
				read.Thinking += part.Text
			}
		case responses.ResponseFunctionToolCall:
			same = same && d.inputs[int64(index)] == item.Arguments
			read.Calls = append(read.Calls, call{
				ID: item.CallID, Name: item.Name, Text: item.Arguments,
			})
		case responses.ResponseCustomToolCall:
			same = same && d.inputs[int64(index)] == item.Input
			read.Calls = append(read.Calls, call{
				ID: item.CallID, Name: item.Name, Text: item.Input, Free: true,
			})
		}
	}
	if !same || d.text != read.Text || d.thinking != read.Thinking {
		return read, errDeltas
	}
	return read, nil
}
