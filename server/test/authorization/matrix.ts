/** Who can be calling. The last four hold a token that once was, or never was, that of a rightful caller. */
export const CALLERS = [
  'anonymous',
  'merchant',
  'creator',
  'admin',
  'suspended',
  'ended',
  'expired',
  'garbage',
] as const
export type Caller = (typeof CALLERS)[number]

/** `ok`: the call does what it is for. Else the status that refuses it. */
export type Verdict = 'ok' | '401' | '403' | '404'

/**
 * Every procedure and who may do what with it, over REST and tRPC alike. A plus names one of several ways to call it
 * that differ in who may.
 */
const PROCEDURES = `
                            anonymous  merchant  creator  admin  suspended  ended  expired  garbage
  auth.register             ok         ok        ok       ok     ok         ok     ok       ok
  auth.login                ok         ok        ok       ok     ok         ok     ok       ok
  auth.requestPasswordReset ok        ok        ok       ok     ok         ok     ok       ok
  auth.resetPassword        ok         ok        ok       ok     ok         ok     ok       ok
  auth.verifyEmail          ok         ok        ok       ok     ok         ok     ok       ok
  auth.resendVerification   401        ok        ok       ok     401        401    401      401
  auth.logout               401        ok        ok       ok     401        401    401      401
  auth.changePassword       401        ok        ok       ok     401        401    401      401
  auth.listSessions         401        ok        ok       ok     401        401    401      401
  auth.endSession           401        ok        ok       ok     401        401    401      401
  auth.endOtherSessions     401        ok        ok       ok     401        401    401      401
  auth.startTotp            401        ok        ok       ok     401        401    401      401
  auth.confirmTotp          401        ok        ok       ok     401        401    401      401
  auth.renewRecoveryCodes   401        ok        ok       ok     401        401    401      401
  auth.disableTotp          401        ok        ok       ok     401        401    401      401
  auth.stepUp               401        ok        ok       ok     401        401    401      401
  users.notifications       401        ok        ok       ok     401        401    401      401
  users.updateNotifications 401        ok        ok       ok     401        401    401      401
  users.me                  401        ok        ok       ok     401        401    401      401
  users.updateMe            401        ok        ok       ok     401        401    401      401
  stores.connect            401        ok        403      403    401        401    401      401
  stores.list               401        ok        403      403    401        401    401      401
  stores.get                401        ok        403      403    401        401    401      401
  stores.rotateSecret       401        ok        403      403    401        401    401      401
  stores.remove             401        ok        403      403    401        401    401      401
  offers.list               ok         ok        ok       ok     ok         ok     ok       ok
  offers.list+mine          401        ok        403      403    401        401    401      401
  offers.categories         ok         ok        ok       ok     ok         ok     ok       ok
  offers.get+live           ok         ok        ok       ok     ok         ok     ok       ok
  offers.get+draft          404        ok        404      ok     404        404    404      404
  offers.create             401        ok        403      403    401        401    401      401
  offers.update             401        ok        403      403    401        401    401      401
  offers.setStatus          401        ok        403      403    401        401    401      401
  applications.apply        401        403       ok       403    401        401    401      401
  applications.listForOffer 401        ok        403      403    401        401    401      401
  applications.list         401        ok        ok       403    401        401    401      401
  applications.decide       401        ok        403      403    401        401    401      401
  applications.withdraw     401        403       ok       403    401        401    401      401
  links.resolve             ok         ok        ok       ok     ok         ok     ok       ok
  links.list                401        ok        ok       403    401        401    401      401
  links.setCoupon           401        ok        403      403    401        401    401      401
  links.setCoupon+end       401        ok        403      403    401        401    401      401
  links.end                 401        ok        403      403    401        401    401      401
  sales.list                401        ok        ok       403    401        401    401      401
  sales.get                 401        ok        ok       403    401        401    401      401
  sales.requestCredit       401        ok        403      403    401        401    401      401
  pendingOrders.list        401        ok        ok       403    401        401    401      401
  payouts.list              401        ok        ok       403    401        401    401      401
  billing.listCycles        401        ok        403      403    401        401    401      401
  admin.listFlagged         401        403       403      ok     401        401    401      401
  admin.resolveFlag         401        403       403      ok     401        401    401      401
  admin.vetOffer            401        403       403      ok     401        401    401      401
  admin.suspendUser         401        403       403      ok     401        401    401      401
  admin.reinstateUser       401        403       403      ok     401        401    401      401
  jobs.startExport          401        ok        ok       ok     401        401    401      401
  jobs.startExport+billing  401        ok        403      ok     401        401    401      401
  jobs.get                  401        ok        ok       ok     401        401    401      401
  summaries.get             401        ok        ok       403    401        401    401      401
  summaries.series          401        ok        ok       403    401        401    401      401
  live.changes              401        ok        ok       403    401        401    401      401
  webhooks.create           401        ok        ok       403    401        401    401      401
  webhooks.list             401        ok        ok       403    401        401    401      401
  webhooks.get              401        ok        ok       403    401        401    401      401
  webhooks.update           401        ok        ok       403    401        401    401      401
  webhooks.remove           401        ok        ok       403    401        401    401      401
  webhooks.rotate           401        ok        ok       403    401        401    401      401
  webhooks.deliveries       401        ok        ok       403    401        401    401      401
  webhooks.retry            401        ok        ok       403    401        401    401      401
  webhooks.test             401        ok        ok       403    401        401    401      401
`

/**
 * The routes that are no procedures. Those that look at no session answer everybody alike: a visitor's, a store's or a
 * probe's stray header must not keep them out. The server's METRICS_TOKEN and SECURITY_CONTACT are set, and no user's token is that one.
 */
const EDGES = `
                                    anonymous  merchant  creator  admin  suspended  ended  expired  garbage
  GET /go/:slug                     ok         ok        ok       ok     ok         ok     ok       ok
  GET /jobs/:id/file                401        ok        ok       ok     401        401    401      401
  POST /webhooks/store-sales+signed ok         ok        ok       ok     ok         ok     ok       ok
  POST /webhooks/store-sales+forged 401        401       401      401    401        401    401      401
  POST /webhooks/processor+signed   ok         ok        ok       ok     ok         ok     ok       ok
  POST /webhooks/processor+forged   401        401       401      401    401        401    401      401
  GET /                             ok         ok        ok       ok     ok         ok     ok       ok
  GET /store.js                     ok         ok        ok       ok     ok         ok     ok       ok
  GET /client.tgz                   ok         ok        ok       ok     ok         ok     ok       ok
  GET /healthz                      ok         ok        ok       ok     ok         ok     ok       ok
  GET /readyz                       ok         ok        ok       ok     ok         ok     ok       ok
  GET /metrics                      401        401       401      401    401        401    401      401
  GET /.well-known/security.txt     ok         ok        ok       ok     ok         ok     ok       ok
  GET /openapi.json                 ok         ok        ok       ok     ok         ok     ok       ok
  GET /docs                         ok         ok        ok       ok     ok         ok     ok       ok
  GET /account/verify-email         ok         ok        ok       ok     ok         ok     ok       ok
  GET /account/reset-password       ok         ok        ok       ok     ok         ok     ok       ok
  GET /account/unsubscribe          ok         ok        ok       ok     ok         ok     ok       ok
  POST /account/unsubscribe         ok         ok        ok       ok     ok         ok     ok       ok
  GET /account/account.js           ok         ok        ok       ok     ok         ok     ok       ok
  GET /account/account.css          ok         ok        ok       ok     ok         ok     ok       ok
  GET /docs/start.js                ok         ok        ok       ok     ok         ok     ok       ok
  GET /docs/style.css               ok         ok        ok       ok     ok         ok     ok       ok
  GET /docs/swagger-ui.css          ok         ok        ok       ok     ok         ok     ok       ok
  GET /docs/swagger-ui-bundle.js    ok         ok        ok       ok     ok         ok     ok       ok
  GET /docs/guides                  ok         ok        ok       ok     ok         ok     ok       ok
  GET /docs/guides/:name            ok         ok        ok       ok     ok         ok     ok       ok
  GET /docs/guides.css              ok         ok        ok       ok     ok         ok     ok       ok
  GET /docs/guides/drawings/create-webhook.svg ok         ok        ok       ok     ok         ok     ok       ok
  GET /docs/guides/drawings/webhook-secret.svg ok         ok        ok       ok     ok         ok     ok       ok
  GET /docs/guides/drawings/theme-script.svg ok         ok        ok       ok     ok         ok     ok       ok
  GET /docs/favicon-32x32.png       ok         ok        ok       ok     ok         ok     ok       ok
`

export type Row = Record<Caller, Verdict>

export const PROCEDURE_CELLS = readTable(PROCEDURES)
export const EDGE_CELLS = readTable(EDGES)

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
    rows.set(name, Object.fromEntries(CALLERS.map((caller, n) => [caller, readVerdict(verdicts[n])])) as Row)
  }
  return rows
}

function readVerdict(text: string | undefined): Verdict {
  if (text === 'ok' || text === '401' || text === '403' || text === '404') return text
  throw new Error(`"${text}" is no verdict`)
}
