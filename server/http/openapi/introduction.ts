import { ERROR_STATUS, ERROR_TEXTS, type ErrorCode } from '../../../shared/error-codes.ts'
import { EXAMPLES } from './examples.ts'

/** The text above the operations, in Markdown. Links are relative to the page that shows it, `/docs`. */
export function introduction(serverUrl: string): string {
  return `Merchants list products as offers, creators apply, and an approval creates an affiliate link. The merchant's Shopify store reports paid orders; accepted sales are billed to the merchant, and creators are paid from what the merchant paid.

Guides: [Quick start](docs/guides/quickstart) · [Use the API](docs/guides/api) · [Connect Shopify](docs/guides/connect-shopify) · [Operate](docs/guides/operate) · [Settings](docs/guides/settings) · [Security](docs/guides/security)

## Getting started

**1. Register.** The response has a token. \`POST /auth/login\` returns a new one later; a token is valid for 30 days.

\`\`\`sh
BASE=${serverUrl}
curl -s "$BASE/auth/register" -H 'content-type: application/json' \\
  -d '${JSON.stringify(EXAMPLES.bodies['auth.register'])}'
\`\`\`

**2. Send the token** as \`Authorization: Bearer <token>\`. Each operation below says whether it is public, needs a token, or takes one if there is one.

\`\`\`sh
TOKEN=...   # token of the response
curl -s "$BASE/me" -H "authorization: Bearer $TOKEN"
\`\`\`

**3. Make the first call.** Browse live offers, then apply to one:

\`\`\`sh
curl -s "$BASE/offers?limit=3&sort=commission_desc"
OFFER=...   # an id from the list
curl -s "$BASE/offers/$OFFER/applications" -H "authorization: Bearer $TOKEN" \\
  -H 'content-type: application/json' -d '{}'
\`\`\`

On this page, choose **Authorize**, paste the token, and use **Try it out**.

## Conventions

**Paging.** A list answers \`items\` and \`next_cursor\`. Send \`next_cursor\` as \`cursor\` for the next page; it is null on the last one. \`limit\` is 25 by default and 100 at most.

**Money.** Amounts are Pakistani rupees as text with two places: \`"1125.00"\`. Calculate with decimals or paisa, never with floating point. Rates are percent: \`12.5\`.

**Ids and times.** Ids are UUIDv7 in small letters, so they sort by age. Times are RFC 3339 in UTC with milliseconds.

**Repeating a call.** Setting a state that is set already, such as a status or a decision, changes nothing and succeeds; the opposite decision, and the same one with another reason or coupon code, is refused with \`already_decided\`. Applying twice is refused with \`already_applied\`. \`POST /offers\` creates another draft each time: look for it with \`GET /offers?mine=true\` before you repeat it.

**Incoming webhooks.** Stores and the payment processor sign the raw body; see **incoming** below. A 200 means that the event is stored. A delivery that is repeated changes nothing, so senders may retry freely.

**Outgoing webhooks.** Events of your account are sent to the endpoints that you add under **webhooks**, signed as [Standard Webhooks](https://www.standardwebhooks.com) describes. The [guide](docs/guides/webhooks) lists the events and shows how to verify them.

**Live updates.** The tRPC subscription \`live.changes\` streams a caller's sales, payouts and billing cycles. Each operation with a bearer token is also a tRPC procedure of the same name under \`/trpc\`.

**Changes** are additive: fields are never renamed or retyped, but new ones may appear. Ignore fields that you do not know.

## Errors

An error is \`application/problem+json\` (RFC 9457). Decide by \`code\`; \`detail\` is for people. \`validation_failed\` lists each wrong field in \`issues\`. Quote \`request_id\` when you report a problem.

${errorTable()}
`
}

/** Every code as a row of a Markdown table. */
function errorTable(): string {
  const rows = Object.entries(ERROR_STATUS).map(([code, status]) => {
    const { meaning, next } = ERROR_TEXTS[code as ErrorCode]
    return `| \`${code}\` | ${status} | ${meaning} | ${next} |`
  })
  return ['| code | status | meaning | what to do |', '|---|---|---|---|', ...rows].join('\n')
}
