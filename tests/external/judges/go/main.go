// Command judges lets the official Go clients read transcoded streams.
//
// usage: judges manifest.jsonl answers.jsonl
//
// In: a manifest, one stream a line.  Out: one line for each, in order: {client, name, answer} or
// {client, name, raised}.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/openai/openai-go/v3"
)

var judges = map[string]func(*http.Client) (answer, error){
	"openai-chat":                readChat,
	"openai-responses":           readResponses,
	"anthropic-messages":         readMessages,
	"openai-chat (whole)":        readWholeChat,
	"openai-responses (whole)":   readWholeResponses,
	"anthropic-messages (whole)": readWholeMessages,
}

type verdict struct {
	Client string  `json:"client"`
	Name   string  `json:"name"`
	Answer *answer `json:"answer,omitempty"`
	Raised string  `json:"raised,omitempty"`
	// RetryAfter is the header of that name of the answer that was refused.
	RetryAfter string `json:"retry_after,omitempty"`
}

func judged(line []byte) (verdict, error) {
	var one streamed
	if err := json.Unmarshal(line, &one); err != nil {
		return verdict{}, err
	}
	read, known := judges[one.Client]
	if !known {
		return verdict{}, fmt.Errorf("no client for %s", one.Client)
	}
	transport, err := transportOf(one)
	if err != nil {
		return verdict{}, err
	}
	result := verdict{Client: one.Client, Name: one.Name}
	if given, err := read(transport); err != nil {
		result.Raised, result.RetryAfter = said(err), retryAfter(err)
	} else {
		result.Answer = &given
	}
	return result, nil
}

// said returns the text of an error: the OpenAI client keeps the provider's message in a member.
func said(err error) string {
	var refused *openai.Error
	if errors.As(err, &refused) {
		return err.Error() + " " + refused.Message
	}
	return err.Error()
}

// retryAfter returns the header of a refused answer, which the clients' errors keep.
func retryAfter(err error) string {
	var ofOpenAI *openai.Error
	if errors.As(err, &ofOpenAI) && ofOpenAI.Response != nil {
		return ofOpenAI.Response.Header.Get("retry-after")
	}
	var ofAnthropic *anthropic.Error
	if errors.As(err, &ofAnthropic) && ofAnthropic.Response != nil {
		return ofAnthropic.Response.Header.Get("retry-after")
	}
	return ""
}

func run(manifest, answers string) error {
	lines, err := os.ReadFile(manifest)
	if err != nil {
		return err
	}
	output, err := os.Create(answers)
	if err != nil {
		return err
	}
	defer output.Close()
	writer := bufio.NewWriter(output)
	encoder := json.NewEncoder(writer)
	for line := range bytes.Lines(lines) {
		result, err := judged(line)
		if err != nil {
			return err
		}
		if err := encoder.Encode(result); err != nil {
			return err
		}
	}
	return writer.Flush()
}

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: judges manifest.jsonl answers.jsonl")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
