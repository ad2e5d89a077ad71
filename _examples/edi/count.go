package main

import (
	"context"
	"fmt"

	"github.com/jmoiron/sqlx"
)

// counts is what the database says in the end.
type counts struct {
	Documents   int // different files received
	Deliveries  int // receipts of them
	Transitions int // rows of history
	Doubled     int // rows beyond the first of a file
	Lost        int // files without a row
	Unanswered  int // dispositions in the history that are not the results in the inbox
}

func count(ctx context.Context, db *sqlx.DB) (c counts, err error) {
	err = db.GetContext(ctx, &c, `
WITH per_file AS (
  SELECT count(*) AS receipts,
         (SELECT count(*) FROM order_history h WHERE h.partner = r.partner AND h.file = r.file) AS transitions
  FROM receipts r GROUP BY r.partner, r.file
)
SELECT count(*)                      AS documents,
       sum(receipts)                 AS deliveries,
       sum(transitions)              AS transitions,
       sum(max(transitions - 1, 0))  AS doubled,
       sum(transitions = 0)          AS lost,
       (SELECT count(*) FROM (
          SELECT disposition, count(*) FROM order_history GROUP BY 1
          EXCEPT SELECT CAST(result AS TEXT), count(*) FROM inbox_messages GROUP BY 1
       ))                            AS unanswered
FROM per_file`)
	return c, err
}

// check returns what is wrong with the counts, if anything is.
func (c counts) check(documents, deliveries int) error {
	want := counts{Documents: documents, Deliveries: deliveries, Transitions: documents}
	if c != want {
		return fmt.Errorf("%d documents, %d deliveries, %d transitions, %d doubled, %d lost, %d dispositions without a result in the inbox",
			c.Documents, c.Deliveries, c.Transitions, c.Doubled, c.Lost, c.Unanswered)
	}
	return nil
}

func (c counts) String() string {
	return fmt.Sprintf("%d documents, %d deliveries, %d transitions, one transition per document, %d doubled, %d lost",
		c.Documents, c.Deliveries, c.Transitions, c.Doubled, c.Lost)
}
