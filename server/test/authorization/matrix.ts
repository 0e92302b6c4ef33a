/**
 * Who can be calling. Those from `suspended` to `garbage` hold a token that once was, or never was, that of a rightful caller; the last two an
 * API key of one, or of a merchant where only admins may call, who have no keys.
 */
export const CALLERS = [
  'anonymous',
  'merchant',
  'creator',
  'admin',
  'suspended',
  'ended',
  'expired',
  'garbage',
  'readKey',
  'writeKey',
] as const
export type Caller = (typeof CALLERS)[number]

/** `ok`: the call does what it is for. Else the status that refuses it. */
export type Verdict = 'ok' | '401' | '403' | '404'

/**
 * Every procedure and who may do what with it, over REST and tRPC alike. A plus names one of several ways to call it
 * that differ in who may.
 */
const PROCEDURES = `
                            anonymous  merchant  creator  admin  suspended  ended  expired  garbage  readKey  writeKey
  auth.register             ok         ok        ok       ok     ok         ok     ok       ok       ok       ok
  auth.login                ok         ok        ok       ok     ok         ok     ok       ok       ok       ok
  auth.requestPasswordReset ok        ok        ok       ok     ok         ok     ok       ok       ok       ok
  auth.resetPassword        ok         ok        ok       ok     ok         ok     ok       ok       ok       ok
  auth.verifyEmail          ok         ok        ok       ok     ok         ok     ok       ok       ok       ok
  auth.resendVerification   401        ok        ok       ok     401        401    401      401      403      403
  auth.logout               401        ok        ok       ok     401        401    401      401      403      403
  auth.changePassword       401        ok        ok       ok     401        401    401      401      403      403
  auth.listSessions         401        ok        ok       ok     401        401    401      401      403      403
  auth.endSession           401        ok        ok       ok     401        401    401      401      403      403
  auth.endOtherSessions     401        ok        ok       ok     401        401    401      401      403      403
  auth.startTotp            401        ok        ok       ok     401        401    401      401      403      403
  auth.confirmTotp          401        ok        ok       ok     401        401    401      401      403      403
  auth.renewRecoveryCodes   401        ok        ok       ok     401        401    401      401      403      403
  auth.disableTotp          401        ok        ok       ok     401        401    401      401      403      403
  auth.stepUp               401        ok        ok       ok     401        401    401      401      403      403
  auth.createApiKey         401        ok        ok       403    401        401    401      401      403      403
  auth.listApiKeys          401        ok        ok       403    401        401    401      401      403      403
  auth.deleteApiKey         401        ok        ok       403    401        401    401      401      403      403
  users.notifications       401        ok        ok       ok     401        401    401      401      ok       ok
  users.updateNotifications 401        ok        ok       ok     401        401    401      401      403      403
  users.me                  401        ok        ok       ok     401        401    401      401      ok       ok
  users.updateMe            401        ok        ok       ok     401        401    401      401      403      403
  stores.connect            401        ok        403      403    401        401    401      401      403      ok
  stores.list               401        ok        403      403    401        401    401      401      ok       ok
  stores.get                401        ok        403      403    401        401    401      401      ok       ok
  stores.rotateSecret       401        ok        403      403    401        401    401      401      403      ok
  stores.remove             401        ok        403      403    401        401    401      401      403      ok
  offers.list               ok         ok        ok       ok     ok         ok     ok       ok       ok       ok
  offers.list+mine          401        ok        403      403    401        401    401      401      403      403
  offers.categories         ok         ok        ok       ok     ok         ok     ok       ok       ok       ok
  offers.get+live           ok         ok        ok       ok     ok         ok     ok       ok       ok       ok
  offers.get+draft          404        ok        404      ok     404        404    404      404      404      404
  offers.create             401        ok        403      403    401        401    401      401      403      ok
  offers.update             401        ok        403      403    401        401    401      401      403      ok
  offers.setStatus          401        ok        403      403    401        401    401      401      403      ok
  applications.apply        401        403       ok       403    401        401    401      401      403      ok
  applications.listForOffer 401        ok        403      403    401        401    401      401      ok       ok
  applications.list         401        ok        ok       403    401        401    401      401      ok       ok
  applications.decide       401        ok        403      403    401        401    401      401      403      ok
  applications.withdraw     401        403       ok       403    401        401    401      401      403      ok
  links.resolve             ok         ok        ok       ok     ok         ok     ok       ok       ok       ok
  links.list                401        ok        ok       403    401        401    401      401      ok       ok
  links.setCoupon           401        ok        403      403    401        401    401      401      403      ok
  links.setCoupon+end       401        ok        403      403    401        401    401      401      403      ok
  links.end                 401        ok        403      403    401        401    401      401      403      ok
  sales.list                401        ok        ok       403    401        401    401      401      ok       ok
  sales.get                 401        ok        ok       403    401        401    401      401      ok       ok
  sales.requestCredit       401        ok        403      403    401        401    401      401      403      ok
  pendingOrders.list        401        ok        ok       403    401        401    401      401      ok       ok
  payouts.list              401        ok        ok       403    401        401    401      401      ok       ok
  billing.listCycles        401        ok        403      403    401        401    401      401      ok       ok
  admin.listFlagged         401        403       403      ok     401        401    401      401      403      403
  admin.resolveFlag         401        403       403      ok     401        401    401      401      403      403
  admin.vetOffer            401        403       403      ok     401        401    401      401      403      403
  admin.listUsers           401        403       403      ok     401        401    401      401      403      403
  admin.previewSuspension   401        403       403      ok     401        401    401      401      403      403
  admin.suspendUser         401        403       403      ok     401        401    401      401      403      403
  admin.reinstateUser       401        403       403      ok     401        401    401      401      403      403
  jobs.startExport          401        ok        ok       ok     401        401    401      401      403      ok
  jobs.startExport+billing  401        ok        403      ok     401        401    401      401      403      ok
  jobs.list                 401        ok        ok       ok     401        401    401      401      ok       ok
  jobs.get                  401        ok        ok       ok     401        401    401      401      ok       ok
  summaries.get             401        ok        ok       403    401        401    401      401      ok       ok
  summaries.series          401        ok        ok       403    401        401    401      401      ok       ok
  live.changes              401        ok        ok       403    401        401    401      401      ok       ok
  webhooks.create           401        ok        ok       403    401        401    401      401      403      ok
  webhooks.list             401        ok        ok       403    401        401    401      401      ok       ok
  webhooks.get              401        ok        ok       403    401        401    401      401      ok       ok
  webhooks.update           401        ok        ok       403    401        401    401      401      403      ok
  webhooks.remove           401        ok        ok       403    401        401    401      401      403      ok
  webhooks.rotate           401        ok        ok       403    401        401    401      401      403      ok
  webhooks.deliveries       401        ok        ok       403    401        401    401      401      ok       ok
  webhooks.retry            401        ok        ok       403    401        401    401      401      403      ok
  webhooks.test             401        ok        ok       403    401        401    401      401      403      ok
`

/** The routes that are no procedures and look at who calls. The server's METRICS_TOKEN is set, and no user's token is that one. */
const EDGES = `
                                    anonymous  merchant  creator  admin  suspended  ended  expired  garbage  readKey  writeKey
  GET /jobs/:id/file                401        ok        ok       ok     401        401    401      401      ok       ok
  POST /webhooks/store-sales+forged 401        401       401      401    401        401    401      401      401      401
  POST /webhooks/processor+forged   401        401       401      401    401        401    401      401      401      401
  GET /metrics                      401        401       401      401    401        401    401      401      401      401
`

/** Those that answer everyone alike: a visitor's, a store's or a probe's stray header must not keep them out. SECURITY_CONTACT is set. */
const OPEN_EDGES = `
  GET /go/:slug, POST /webhooks/store-sales+signed, POST /webhooks/processor+signed, GET /, GET /store.js, GET /client.tgz,
  GET /healthz, GET /readyz, GET /.well-known/security.txt, GET /openapi.json, GET /docs, GET /app, GET /app/, GET /app/*,
  GET /account/verify-email, GET /account/reset-password, GET /account/unsubscribe, POST /account/unsubscribe,
  GET /account/account.js, GET /docs/reference.js, GET /docs/reference.css, GET /docs/pages.css, GET /docs/pages.js,
  GET /docs/swagger-ui.css, GET /docs/swagger-ui-bundle.js, GET /docs/guides, GET /docs/guides/:name,
  GET /docs/guides/drawings/create-webhook.svg, GET /docs/guides/drawings/webhook-secret.svg,
  GET /docs/guides/drawings/theme-script.svg, GET /docs/favicon-32x32.png
`

type Row = Record<Caller, Verdict>

export const PROCEDURE_CELLS = readTable(PROCEDURES)
export const EDGE_CELLS = new Map([
  ...OPEN_EDGES.trim()
    .split(/,\s+/)
    .map((route) => [route, rowOf(() => 'ok')] as const),
  ...readTable(EDGES),
])

function rowOf(verdict: (n: number) => Verdict): Row {
  return Object.fromEntries(CALLERS.map((caller, n) => [caller, verdict(n)])) as Row
}

function readTable(text: string): Map<string, Row> {
  const [heading = '', ...lines] = text.trim().split('\n')
  if (heading.trim().split(/\s+/).join() !== CALLERS.join())
    throw new Error('the columns are not the callers')
  const rows = new Map<string, Row>()
  for (const line of lines) {
    const cells = line.trim().split(/\s+/)
    const verdicts = cells.splice(-CALLERS.length)
    const name = cells.join(' ')
    if (name === '' || rows.has(name)) throw new Error(`row "${line.trim()}" has no name of its own`)
    rows.set(
      name,
      rowOf((n) => readVerdict(verdicts[n])),
    )
  }
  return rows
}

function readVerdict(text: string | undefined): Verdict {
  if (text === 'ok' || text === '401' || text === '403' || text === '404') return text
  throw new Error(`"${text}" is no verdict`)
}
