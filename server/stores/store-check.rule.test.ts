// database: none
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { type CheckedStore, checkStore } from './store-check.rule.ts'

const STORE: CheckedStore = {
  id: '01900000-0000-7000-8000-000000000001',
  platform: 'shopify',
  shop_domain: 'kurta.myshopify.com',
  status: 'receiving',
  webhook_url: 'https://affiliate.example/webhooks/store-sales',
  script_url: 'https://affiliate.example/store.js',
  script_tag: '<script src="https://affiliate.example/store.js" async></script>',
  last_event_at: '2026-11-20T10:00:00.000Z',
  last_refused_at: null,
  last_refusal: null,
  unreadable_7d: 0,
  tracked_30d: { cart: 3, landing: 1, line: 0, coupon: 2, none: 9 },
  rejected_30d: {},
  claims: 1,
  created_at: '2026-10-01T10:00:00.000Z',
}
const NOTHING = { cart: 0, landing: 0, line: 0, coupon: 0, none: 0 }
const refused = (reason: 'no_signature' | 'wrong_signature') => {
  const at = '2026-11-21T10:00:00.000Z'
  return { last_refused_at: at, last_refusal: { at, reason } }
}
const REFUSED = refused('wrong_signature')

/** The next steps of what must be done. */
function stepsOf(changes: Partial<CheckedStore>): string[] {
  const findings = checkStore({ ...STORE, ...changes }, (time) => time)
  return findings.flatMap(({ state, next }) => (state === 'todo' ? (next ?? '') : []))
}

const it = suite('the check of a store')

it('finds nothing to do at a store that receives orders with cart attributes', () => {
  assert.equal(stepsOf({}), [])
  const untracked = { tracked_30d: { ...NOTHING, none: 9 }, rejected_30d: { no_tracking_reference: 9 } }
  assert.equal(stepsOf({ ...REFUSED, ...untracked, claims: 2 }), [])
})

it('says how long the script must keep references for an offer with a long window', () => {
  const script_tag = '<script src="https://affiliate.example/store.js" data-days="90" async></script>'
  const found = checkStore({ ...STORE, script_tag }, (time) => time)
  assert.ok(found.some(({ state, next }) => state === 'note' && next?.endsWith('must say data-days="90".')))
})

const WAITING = { status: 'waiting', last_event_at: null } as const
const LOCAL = { ...WAITING, webhook_url: 'http://127.0.0.1:3000/webhooks/store-sales' }

for (const [what, changes, step] of [
  ['nothing has arrived', WAITING, /create the webhook "Order payment" with the URL https:/],
  ['Shopify cannot reach the service', LOCAL, /set PUBLIC_BASE_URL/],
  [
    'the webhook is for another event',
    { status: 'no_order_payment' },
    /one more webhook with the event "Order/,
  ],
  ['the webhook sends XML', { status: 'xml' }, /the event "Order payment" and the format JSON/],
  ['nothing arrives now', { status: 'silent' }, /Shopify deletes it after many failures/],
  ['another secret is stored', { ...REFUSED, status: 'rejecting' }, /^Store the secret that Shopify shows/],
  ['the signature is missing', { ...refused('no_signature'), status: 'rejecting' }, /your proxy/],
  ['orders are unreadable', { unreadable_7d: 2 }, /webhooks events --state set_aside/],
  [
    "the theme's script is missing",
    { tracked_30d: { ...NOTHING, landing: 4, none: 9 } },
    /^Put <script src="https:\/\/affiliate\.example\/store\.js" async><\/script> before <\/head>/,
  ],
] as [string, Partial<CheckedStore>, RegExp][]) {
  it(`says what to do when ${what}`, () => {
    const steps = stepsOf(changes)
    assert.is(steps.length, 1)
    assert.match(steps[0] ?? '', step)
  })
}

it('notes what needs no action, in the singular where it is one', () => {
  const detailsOf = (changes: Partial<CheckedStore>) =>
    checkStore({ ...STORE, ...changes }, (time) => time).map(({ state, detail }) => `${state}: ${detail}`)
  assert.equal(detailsOf({ last_event_at: null, tracked_30d: { ...NOTHING } }), [
    'note: No signed event has arrived.',
    'ok: No delivery was refused.',
  ])
  const one = detailsOf({ unreadable_7d: 1 })
  assert.ok(one.includes('todo: 1 signed order of the last 7 days could not be read.'), one.join('\n'))
})

it('suspects a missing script only where no coupon codes explain orders without a reference', () => {
  const nextOf = (coupon: number) =>
    checkStore({ ...STORE, tracked_30d: { ...NOTHING, coupon, none: 9 } }, (time) => time).find(
      ({ state }) => state === 'note',
    )?.next ?? null
  assert.match(nextOf(0) ?? '', /script may be missing/)
  assert.is(nextOf(2), null)
})

it('lists the reasons of rejected orders, the most frequent first', () => {
  const findings = checkStore({ ...STORE, rejected_30d: { not_paid: 1, test_order: 4 } }, (time) => time)
  assert.ok(findings.some(({ detail }) => detail === 'Rejected orders of 30 days: test_order 4, not_paid 1.'))
})

it.run()
