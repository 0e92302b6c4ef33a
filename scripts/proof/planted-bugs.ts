/** A small, plausible mistake: a search and replace in one file. */
export interface PlantedBug {
  name: string
  file: string
  /** Occurs exactly once in the file; a test checks this. */
  find: string
  replace: string
  /** The proof that should catch it; the others are asked when it does not. */
  expectedIn: string
  /** SQLite has one writer at a time, so the bug shows on PostgreSQL only. */
  needsPostgres?: true
}

const simulated = (bug: Omit<PlantedBug, 'expectedIn'>): PlantedBug => ({
  ...bug,
  expectedIn: 'simulated weeks',
})

/** Mistakes about orders that wait for their payment. */
const PENDING: PlantedBug[] = [
  simulated({
    name: 'an older report of an order replaces a newer one',
    file: 'server/pending-orders/pending-order.rule.ts',
    find: 'version > current.version',
    replace: 'version !== current.version',
  }),
  simulated({
    name: 'an order that was canceled is still expected',
    file: 'server/pending-orders/pending-order.rule.ts',
    find: "{ ...current, state: furthest(current.state, 'cancelled') }",
    replace: 'current',
  }),
  simulated({
    name: 'an order that was canceled before it was reported as placed waits',
    file: 'server/pending-orders/pending-orders.service.ts',
    find: 'if (subject.facts && keys.has(key))',
    replace: 'if (subject.facts && keys.has(key) && subject.stored)',
  }),
  simulated({
    name: 'an order whose payment came first waits for it',
    file: 'server/pending-orders/pending-orders.service.ts',
    find: 'if (sale && subject.facts)',
    replace: 'if (sale && subject.facts && subject.stored)',
  }),
  simulated({
    name: 'the commission of a canceled order is not what it would pay',
    file: 'server/pending-orders/pending-orders.service.ts',
    find: "financial_status: 'paid', cancelled: false",
    replace: "financial_status: 'paid'",
  }),
]

/** Mistakes in decisions and amounts. */
const ARITHMETIC: PlantedBug[] = [
  simulated({
    name: 'half a paisa is rounded down',
    file: 'shared/rates.ts',
    find: '+ 5000n) / 10000n',
    replace: '+ 4999n) / 10000n',
  }),
  simulated({
    name: 'the platform fee is taken of the basis',
    file: 'server/sales/accept-sale.rule.ts',
    find: 'platform_fee: platformFeeOn(commission, facts.platform_fee_rate)',
    replace:
      'platform_fee: platformFeeOn(commission && (evidence.basis?.netAmount ?? 0), facts.platform_fee_rate)',
  }),
  simulated({
    name: 'taxes stay in the basis although prices include them',
    file: 'server/sales/commission.rule.ts',
    find: 'const tax = taxesIncluded ? shareOfRemaining(line.tax, line) : 0',
    replace: 'const tax = taxesIncluded ? 0 : 0 * line.tax',
  }),
  simulated({
    name: 'gift cards earn commission',
    file: 'server/sales/commission.rule.ts',
    find: "if (line.gift_card) return 'gift_card'",
    replace: "if (line.gift_card && productIds) return 'gift_card'",
  }),
  simulated({
    name: 'the discount of returned pieces is still deducted',
    file: 'server/sales/commission.rule.ts',
    find: 'const discount = shareOfRemaining(line.discount, line)',
    replace: 'const discount = line.discount',
  }),
  simulated({
    name: 'the attribution window is a day too long',
    file: 'server/sales/accept-sale.rule.ts',
    find: 'const window_ends_at = click.created_at + click.link.attribution_window_days * DAY_MS',
    replace: 'const window_ends_at = click.created_at + (click.link.attribution_window_days + 1) * DAY_MS',
  }),
  simulated({
    name: 'a coupon code earns for a day after its end',
    file: 'server/sales/accept-sale.rule.ts',
    find: '(ends_at === null || created_at < ends_at)',
    replace: '(ends_at === null || created_at < ends_at + DAY_MS)',
  }),
  simulated({
    name: 'a coupon code earns while its offer is paused',
    file: 'server/sales/accept-sale.rule.ts',
    find: "offer_status === 'live' &&",
    replace: 'offer_status !== null &&',
  }),
  simulated({
    name: 'of several coupon codes the last one earns',
    file: 'server/sales/accept-sale.rule.ts',
    find: 'coupons.find((one) => obstacleOf(one, facts) === null)',
    replace: 'coupons.findLast((one) => obstacleOf(one, facts) === null)',
  }),
  simulated({
    name: 'a reused coupon code earns for the link that had it first',
    file: 'server/links/coupons.service.ts',
    find: 'rows.findLast((row) => row.starts_at <= at) ?? rows[0]',
    replace: 'rows.find((row) => row.starts_at <= at) ?? rows[0]',
  }),
  simulated({
    name: "another merchant's link earns",
    file: 'server/sales/accept-sale.rule.ts',
    find: 'if (click?.link.merchant_id !== facts.reporting_merchant_id) return null',
    replace: 'if (!click) return null',
  }),
  simulated({
    name: "a suspended creator's sales are accepted",
    file: 'server/sales/sales.service.ts',
    find: 'creator_suspended: link !== undefined && isSuspended(link.creator_id)',
    replace: 'creator_suspended: link !== undefined && isSuspended(report.merchantId)',
  }),
]

const onBothDatabases = (bug: Omit<PlantedBug, 'expectedIn'>): PlantedBug => ({
  ...bug,
  expectedIn: 'both databases',
})

/** Mistakes about what stores send. */
const ORDERS: PlantedBug[] = [
  onBothDatabases({
    name: 'tips earn commission',
    file: 'server/sales/commission.rule.ts',
    find: 'if (line.not_goods && !isNamed) return line.not_goods',
    replace: "if (line.not_goods === 'fee' && !isNamed) return line.not_goods",
  }),
  onBothDatabases({
    name: 'an amount that was paid back earns commission',
    file: 'server/sales/commission.rule.ts',
    find: 'return paid > 0 ? withRefund',
    replace: 'return paid < 0 ? withRefund',
  }),
  onBothDatabases({
    name: 'items that were taken off an order of an older API version count',
    file: 'server/shopify/order-lines.ts',
    find: 'Math.max(0, original_quantity - returned)',
    replace: 'Math.max(0, original_quantity - 0 * returned)',
  }),
  onBothDatabases({
    name: 'a discount that no line carries is not deducted',
    file: 'server/shopify/order-lines.ts',
    find: 'if (missing === 0) return nothing',
    replace: 'if (missing >= 0) return nothing',
  }),
  onBothDatabases({
    name: 'a coupon code that cannot earn takes the order from a click that can',
    file: 'server/sales/accept-sale.rule.ts',
    find: 'const earning = versionOf(facts) === 3 ?',
    replace: 'const earning = versionOf(facts) >= 3 ?',
  }),
  onBothDatabases({
    name: 'of several good clicks the oldest earns',
    file: 'server/sales/sales.service.ts',
    find: 'return times.indexOf(Math.max(...times))',
    replace: 'return times.findIndex((time) => time > 0)',
  }),
  onBothDatabases({
    name: 'an order with a deleted product is rejected in silence',
    file: 'server/sales/sales.service.ts',
    find: "rejection_reason === 'product_unknown' || mayBeOfOffer",
    replace: 'mayBeOfOffer',
  }),
  onBothDatabases({
    name: 'an order counts again under another name of its shop',
    file: 'server/sales/sales.service.ts',
    find: 'return [storeId, ...(siblings.get(storeId) ?? [])].map',
    replace: 'return [storeId, ...(siblings.get(storeId) ?? []).slice(9)].map',
  }),
]

/** Mistakes around cycles, credits and payouts. */
const BOOKS: PlantedBug[] = [
  simulated({
    name: 'a billing period ends an hour early',
    file: 'server/billing/billing-period.rule.ts',
    find: 'return calendarPeriodAt(moment, length, zone).end',
    replace: 'return calendarPeriodAt(moment, length, zone).end - 3_600_000',
  }),
  simulated({
    name: 'billing periods follow the clock of London',
    file: 'server/billing/billing.service.ts',
    find: 'zone: platform.config.BILLING_TIMEZONE,',
    replace: "zone: platform.config.BILLING_TIMEZONE && 'UTC',",
  }),
  simulated({
    name: 'a used credit is used again',
    file: 'server/billing/credits.store.ts',
    find: 'select merchant_id, -credit_total',
    replace: 'select merchant_id, -0 * credit_total',
  }),
  simulated({
    name: 'an invoice may sink below one rupee',
    file: 'server/billing/close-cycle.rule.ts',
    find: 'const amountDue = Math.max(MINIMUM_INVOICE, total - availableCredit)',
    replace: 'const amountDue = Math.max(1, total - availableCredit)',
  }),
  simulated({
    name: 'a payment of another amount charges the cycle',
    file: 'server/processor/outcome-event.rule.ts',
    find: "if (event.amount !== amount) return 'amount_mismatch'",
    replace: "if (event.amount < 0) return 'amount_mismatch'",
  }),
  simulated({
    name: 'a balance of exactly the threshold is not paid',
    file: 'server/payouts/payout-eligibility.rule.ts',
    find: 'amount < facts.threshold',
    replace: 'amount <= facts.threshold',
  }),
  simulated({
    name: 'a failed payout keeps its shares',
    file: 'server/payouts/payout-events.service.ts',
    find: "if (event.kind === 'payout_failed')",
    replace: "if (event.kind === 'payout_confirmed' && !moved)",
  }),
  simulated({
    name: 'a fourth payout follows three failed ones',
    file: 'server/payouts/payout-eligibility.rule.ts',
    find: 'facts.failedInRow >= MAX_FAILURES_IN_A_ROW',
    replace: 'facts.failedInRow > MAX_FAILURES_IN_A_ROW',
  }),
  simulated({
    name: 'a contradicting word on a payout passes in silence',
    file: 'server/processor/outcome-event.rule.ts',
    find: "if (standing === 'other') return 'other_outcome'",
    replace: "if (standing === 'other') return 'already'",
  }),
]

/** Mistakes in what keeps one thing from happening twice, or not at all. */
const ONCE: PlantedBug[] = [
  simulated({
    name: 'an order that is known already is taken for a new one',
    file: 'server/sales/sales.service.ts',
    find: 'if (!sale || isDecidedAgain(sale, report.order)) next.set(report.key, report)',
    replace:
      'if (reports.every((one) => !one.decision) || !sale || isDecidedAgain(sale, report.order)) next.set(report.key, report)',
  }),
  simulated({
    name: 'a sale that was rejected for anything is decided again',
    file: 'server/sales/sales.service.ts',
    find: "return sale.rejection_reason === 'not_paid' && sale.decided_at === null && isPaid(order)",
    replace: 'return sale.rejection_reason !== null && sale.decided_at === null && isPaid(order)',
  }),
  simulated({
    name: 'an unpaid order is decided again although it is still unpaid',
    file: 'server/sales/sales.service.ts',
    find: 'sale.decided_at === null && isPaid(order)',
    replace: 'sale.decided_at === null && order.order_id.length > 0',
  }),
  simulated({
    name: 'the former decision of a sale is not kept',
    file: 'server/sales/sales.store.ts',
    find: ".select(['id', 'event_id', 'created_at', 'receipt'])",
    replace: ".select(['id', 'event_id', 'created_at', 'receipt']).where('event_id', '=', row.event_id)",
  }),
  simulated({
    name: 'a second decision carries the time of the first',
    file: 'server/sales/sales.service.ts',
    find: 'decided_at: former ? decidedAt : null,',
    replace: 'decided_at: former ? former.created_at : null,',
  }),
  simulated({
    name: 'an order that comes again with other amounts passes in silence',
    file: 'server/sales/order-change.rule.ts',
    find: 'if (amountsIn(decided) !== amountsIn(reported))',
    replace: 'if (amountsIn(decided) === null)',
  }),
  {
    name: 'a click out of an image earns',
    file: 'server/http/redirect.ts',
    find: "target.state === 'tracked' && kind !== 'embedded'",
    replace: "target.state === 'tracked' && kind !== undefined",
    expectedIn: 'adversaries',
  },
  {
    name: 'a labelled address of the creator is another buyer',
    file: 'server/sales/sale-facts.ts',
    find: 'mailboxOf(email.trim().toLowerCase()) === mailbox)',
    replace: 'email.trim().toLowerCase() === creatorEmail.trim().toLowerCase())',
    expectedIn: 'adversaries',
  },
  simulated({
    name: 'a delivery with another body passes for a repetition',
    file: 'server/inbox/intake.service.ts',
    find: 'if (different.length === 0) return new Set()',
    replace: 'if (different.length >= 0) return new Set()',
  }),
  {
    name: 'a click is answered before it is on disk',
    file: 'server/clicks/clicks.service.ts',
    find: `addresses.isReady
        ? clicks.add(observed(click))
        : addresses.ready().then(() => clicks.add(observed(click))),`,
    replace: `addresses.ready().then(() => {
          clicks.add(observed(click)).catch(() => {})
        }),`,
    expectedIn: 'kill',
  },
  {
    name: 'an event is answered before it is on disk',
    file: 'server/http/webhooks/webhooks.ts',
    find: 'receipt = await inbox.record(event)',
    replace: "void inbox.record(event)\n    receipt = 'stored'",
    expectedIn: 'kill',
  },
  {
    name: 'an event is settled without the lease that it was claimed with',
    file: 'server/platform/queue/lease-queue.ts',
    find: `coalesce(job.lease_token, '') = done.token`,
    replace: `done.token <> ''`,
    expectedIn: 'race',
  },
  {
    name: 'the thread that reads ahead hands out the order of another event',
    file: 'server/jobs/order-reader-thread.ts',
    find: 'const order = readOrder(text, topics.get(id) ?? null, names)',
    replace:
      'const order = readOrder([...texts.values()].at([...texts.keys()].indexOf(id) - 1)?.text ?? text, topics.get(id) ?? null, names)',
    expectedIn: 'race',
  },
  {
    name: 'an attempt is claimed without a lease',
    file: 'server/platform/queue/lease-queue.ts',
    find: '[this.#spec.leaseUntil]: lease.until',
    replace: '[this.#spec.leaseUntil]: this.#spec.lane ? lease.until : 0',
    expectedIn: 'race',
  },
  {
    name: 'a cycle that another scheduler has closed is closed again',
    file: 'server/billing/close-cycle.rule.ts',
    find: "if (facts.state !== 'open' || facts.asOf < facts.periodEnd)",
    replace: 'if (facts.asOf < facts.periodEnd)',
    expectedIn: 'race',
  },
  {
    name: 'an unknown outcome is not looked up before the next try',
    file: 'server/jobs/processor-calls.ts',
    find: 'if (attempt.tries > 0 &&',
    replace: 'if (attempt.tries > 1_000 &&',
    expectedIn: 'processor faults',
  },
  {
    name: 'each try has an idempotency key of its own',
    file: 'server/processor/http-processor.ts',
    find: "{ 'idempotency-key': attemptId }",
    replace: "{ 'idempotency-key': attemptId + Math.random() }",
    expectedIn: 'processor faults',
  },
  {
    name: 'a rejection inside a 200 counts as success',
    file: 'server/processor/safepay/safepay-status.rule.ts',
    find: "failed: 'refused'",
    replace: "failed: 'created'",
    expectedIn: 'processor faults',
  },
  {
    name: 'too many requests counts as a final refusal',
    file: 'server/processor/http-exchange.ts',
    find: 'const NOT_YET = new Set([425, 429])',
    replace: 'const NOT_YET = new Set([425])',
    expectedIn: 'processor faults',
  },
  {
    name: 'a call without an answer counts as never made',
    file: 'server/processor/attempts.service.ts',
    find: '({ ...row, token: lease.token })',
    replace: '({ ...row, tries: 0, token: lease.token })',
    expectedIn: 'processor faults',
  },
  {
    name: 'a refusal counts at once although an earlier call had no answer',
    file: 'server/processor/retry.rule.ts',
    find: 'unknownAt === null ||',
    replace: 'unknownAt !== at ||',
    expectedIn: 'processor faults',
  },
  {
    name: 'the second call forgets that the first had no answer',
    file: 'server/processor/attempts.service.ts',
    find: '({ ...row, token: lease.token })',
    replace: '({ ...row, unknown_at: row.tries > 2 ? row.unknown_at : null, token: lease.token })',
    expectedIn: 'processor faults',
  },
]

/** Mistakes in what `ledger verify` leaves out. */
const VERIFICATION: PlantedBug[] = [
  {
    name: 'a verification of what is new leaves out sales that were decided again',
    file: 'server/verification/scope.ts',
    find: 'if (others.length === 0) return this.isNew(id)',
    replace: 'if (others.length >= 0) return this.isNew(id)',
    expectedIn: 'invariants',
  },
  {
    name: 'a verified mark covers an event that is not applied yet',
    file: 'server/verification/verified-mark.ts',
    find: 'Math.min(now, pending ? timeOfId(pending) : now)',
    replace: 'Math.max(now, pending ? timeOfId(pending) : now)',
    expectedIn: 'invariants',
  },
  {
    name: 'a verified mark counts although its seal was changed',
    file: 'server/verification/verified-mark.ts',
    find: 'if (stored?.digest !== seal.digest)',
    replace: 'if (!stored)',
    expectedIn: 'invariants',
  },
  {
    name: 'a verification of what is new accepts any first entry after the verified ones',
    file: 'server/verification/chain.ts',
    find: 'const fault = broken ? null : chainFault(keys, before, entry)',
    replace:
      'const fault = broken || starts.get(before.ledgerId) === before ? null : chainFault(keys, before, entry)',
    expectedIn: 'invariants',
  },
]

/** Mistakes about programs that call. */
const PROGRAMS: PlantedBug[] = [
  {
    name: 'an API key that may only read changes things',
    file: 'server/platform/api/procedure.ts',
    find: "actor.apiKey?.scope === 'read' && type === 'mutation'",
    replace: "actor.apiKey?.scope === 'read' && type === 'subscription'",
    expectedIn: 'authorization',
  },
  {
    name: 'a cookie opens a session for the pages of any origin',
    file: 'server/http/session-cookie.ts',
    find: "headers['x-session'] !== 'cookie' || headers.authorization",
    replace: 'headers.authorization',
    expectedIn: 'authorization',
  },
  {
    name: 'another call with the same idempotency key gets the first answer',
    file: 'server/platform/api/idempotency.ts',
    find: 'if (kept.request === request)',
    replace: 'if (kept.request)',
    expectedIn: 'both databases',
  },
]

/** Mistakes about bank transfers that people confirm. */
const BY_HAND: PlantedBug[] = [
  onBothDatabases({
    name: 'a confirmation of another amount counts',
    file: 'server/processor/manual/confirmation.rule.ts',
    find: 'amount !== null && amount !== transfer.amount',
    replace: 'amount !== null && amount <= 0',
  }),
  {
    name: 'a payout that another file has is written to a second one',
    file: 'server/processor/manual/transfers.service.ts',
    find: '(file is null or file =',
    replace: '(true or file =',
    expectedIn: 'race',
  },
  {
    name: 'two operators confirm one transfer without a lock',
    file: 'server/processor/manual/transfers.service.ts',
    find: "await lockRows(tx, 'manual_transfers', named(tx, names))",
    replace: 'await transfersWhere(tx, named(tx, names))',
    expectedIn: 'race',
    needsPostgres: true,
  },
]

export const PLANTED_BUGS: readonly PlantedBug[] = [
  ...ARITHMETIC,
  ...ORDERS,
  ...PENDING,
  ...BOOKS,
  ...ONCE,
  ...VERIFICATION,
  ...PROGRAMS,
  ...BY_HAND,
]
