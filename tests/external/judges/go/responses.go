package main

import (
	"context"
	"errors"
	"net/http"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/responses"
)

var errDeltas = errors.New("the deltas are not the final response")

var responsesRequest = responses.ResponseNewParams{
	Model: "m",
	Input: responses.ResponseNewParamsInputUnion{OfString: openai.String("?")},
}

// deltas is the text of all deltas of an answer, in the order of the items.
type deltas struct {
	text, thinking string
	inputs         map[int64]string
}

func (d *deltas) add(event responses.ResponseStreamEventUnion) {
	switch event.Type {
	case "response.output_text.delta", "response.refusal.delta":
		d.text += event.Delta
	case "response.reasoning_summary_text.delta", "response.reasoning_text.delta":
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
	stream := client.Responses.NewStreaming(context.Background(), responsesRequest)
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
	read = ofResponse(last.Response)
	if !seen.equal(read, last.Response) {
		return read, errDeltas
	}
	return read, nil
}

// readWholeResponses takes a response that was not streamed.
func readWholeResponses(transport *http.Client) (answer, error) {
	client := openaiClient(transport)
	response, err := client.Responses.New(context.Background(), responsesRequest)
	if err != nil {
		return answer{}, err
	}
	return ofResponse(*response), nil
}

// equal reports whether the deltas give what the final response has.
func (d *deltas) equal(read answer, response responses.Response) bool {
	for index, item := range response.Output {
		input := d.inputs[int64(index)]
		switch item := item.AsAny().(type) {
		case responses.ResponseFunctionToolCall:
			if input != item.Arguments {
				return false
			}
		case responses.ResponseCustomToolCall:
			if input != item.Input {
				return false
			}
		}
	}
	return d.text == read.Text && d.thinking == read.Thinking
}

func ofResponse(response responses.Response) answer {
	read := answer{Finish: string(response.Status)}
	if reason := response.IncompleteDetails.Reason; reason != "" {
		read.Finish = reason
	}
	if response.JSON.Usage.Valid() {
		read.InputTokens = &response.Usage.InputTokens
		read.OutputTokens = &response.Usage.OutputTokens
	}
	for _, item := range response.Output {
		switch item := item.AsAny().(type) {
		case responses.ResponseOutputMessage:
			for _, part := range item.Content {
				read.Text += part.Text + part.Refusal
			}
		case responses.ResponseReasoningItem:
			for _, part := range item.Summary {
				read.Thinking += part.Text
			}
			for _, part := range item.Content {
				read.Thinking += part.Text
			}
		case responses.ResponseFunctionToolCall:
			read.Calls = append(read.Calls, call{
				ID: item.CallID, Name: toolName(item.Name, item.Namespace), Text: item.Arguments,
			})
		case responses.ResponseCustomToolCall:
			read.Calls = append(read.Calls, call{
				ID: item.CallID, Name: toolName(item.Name, item.Namespace), Text: item.Input, Free: true,
			})
		}
	}
	return read
}

// Name of a called tool, with the namespace that the client reads beside it.
func toolName(name, namespace string) string {
	if namespace == "" || namespace == name {
		return name
	}
	return namespace + "__" + name
}
