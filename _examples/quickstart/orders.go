package main

import (
	"bufio"
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
)

//go:embed orders.jsonl
var ordersFile []byte

// order is what a shop puts on the topic "orders".
type order struct {
	ID       string   `json:"id"` // the message's UUID too
	PlacedAt string   `json:"placed_at"`
	Customer customer `json:"customer"`
	Currency string   `json:"currency"`
	Lines    []item   `json:"lines"`
}

type customer struct {
	Number  string `json:"number"`
	Name    string `json:"name"`
	Email   string `json:"email"`
	Country string `json:"country"`
}

type item struct {
	SKU      string `json:"sku"`
	Title    string `json:"title"`
	Quantity int    `json:"quantity"`
	Cents    int    `json:"cents"` // for each
}

func (o order) total() int {
	cents := 0
	for _, l := range o.Lines {
		cents += l.Quantity * l.Cents
	}
	return cents
}

// orderLines are the orders as the broker holds them: it does not look inside.
func orderLines() ([]line, error) {
	var orders []line
	rows := bufio.NewScanner(bytes.NewReader(ordersFile))
	for rows.Scan() {
		var o order
		if err := json.Unmarshal(rows.Bytes(), &o); err != nil {
			return nil, fmt.Errorf("orders.jsonl, line %d: %w", len(orders)+1, err)
		}
		orders = append(orders, line{Kind: ordered, ID: o.ID, Payload: bytes.Clone(rows.Bytes())})
	}
	return orders, rows.Err()
}
