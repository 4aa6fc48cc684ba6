// Command interop parses and builds PFCP messages with go-pfcp, for comparison with this project.
//
// It reads lines: a message in hexadecimal is parsed and answered with a line of JSON; "build" is
// answered with a line for each message that it can build, and an empty one.
package main

import (
	"bufio"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"

	"github.com/wmnsk/go-pfcp/ie"
	"github.com/wmnsk/go-pfcp/message"
)

// element is the result of parsing one information element.
type element struct {
	Type uint16 `json:"type"`
	// Values holds the results of its getters.
	Values []string `json:"values"`
	// Elements holds the elements of a group.
	Elements []element `json:"ies,omitempty"`
	Error    string    `json:"error,omitempty"`
}

// parsedMessage is the result of parsing one message.
type parsedMessage struct {
	Name     string    `json:"name"`
	SEID     uint64    `json:"seid"`
	Sequence uint32    `json:"sequence"`
	Elements []element `json:"ies"`
	// Again is the parsed message, marshalled again, in hexadecimal.
	Again string `json:"again"`
	Error string `json:"error,omitempty"`
}

func main() {
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<20)
	out := json.NewEncoder(os.Stdout)
	for lines.Scan() {
		if lines.Text() == "build" {
			for _, built := range buildMessages() {
				write(out, built)
			}
			fmt.Println()
			continue
		}
		write(out, parseMessage(lines.Text()))
	}
}

func write(out *json.Encoder, value any) {
	if err := out.Encode(value); err != nil {
		panic(err)
	}
}

func parseMessage(text string) (result parsedMessage) {
	defer func() {
		if reason := recover(); reason != nil {
			result.Error = fmt.Sprint("panic: ", reason)
		}
	}()
	data, err := hex.DecodeString(text)
	if err != nil {
		return parsedMessage{Error: err.Error()}
	}
	parsed, err := message.Parse(data)
	if err != nil {
		return parsedMessage{Error: err.Error()}
	}
	again := make([]byte, parsed.MarshalLen())
	if err := parsed.MarshalTo(again); err != nil {
		return parsedMessage{Error: err.Error()}
	}
	header, err := message.ParseHeader(data)
	if err != nil {
		return parsedMessage{Error: err.Error()}
	}
	elements, err := ie.ParseMultiIEs(header.Payload)
	if err != nil {
		return parsedMessage{Error: err.Error()}
	}
	return parsedMessage{
		Name:     parsed.MessageTypeName(),
		SEID:     parsed.SEID(),
		Sequence: parsed.Sequence(),
		Elements: describeElements(elements),
		Again:    hex.EncodeToString(again),
	}
}

func describeElements(elements []*ie.IE) []element {
	described := []element{}
	for _, item := range elements {
		if item.IsGrouped() {
			described = append(described, element{Type: item.Type, Elements: describeElements(item.ChildIEs)})
		} else {
			values, err := readFields(item)
			described = append(described, element{Type: item.Type, Values: values, Error: err})
		}
	}
	return described
}
