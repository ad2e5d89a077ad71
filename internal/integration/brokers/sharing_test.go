package brokers_test

import (
	"testing"
)

func testHandlers(t *testing.T, b Broker) {
	const other = "tell-warehouse"
	s := newScene(t, b, stage{groups: []string{group(billing, writeInvoice), group(billing, other)}})
	svc := newService(s)
	svc.handlers = append(svc.handlers, other)
	svc.start(t)
	ids, orders := newOrders(30)
	s.publish(t, orders...)
	s.publish(t, orders[:10]...)
	for _, name := range svc.handlers {
		s.wantOnce(t, consumer(billing, name), ids...)
	}
	svc.watched.wantDuplicates(t, 20)
}

func testServices(t *testing.T, b Broker) {
	const other = "shipping"
	s := newScene(t, b, stage{groups: []string{group(billing, writeInvoice), group(other, writeInvoice)}})
	first, second := newService(s), newService(s)
	second.name = other
	first.namespace, second.namespace = first.name, second.name
	first.start(t)
	second.start(t)
	ids, orders := newOrders(30)
	s.publish(t, orders...)
	s.publish(t, orders[:10]...)
	for _, svc := range []*service{first, second} {
		s.wantOnce(t, consumer(svc.name, writeInvoice), ids...)
		svc.watched.wantDuplicates(t, 10)
	}
}
