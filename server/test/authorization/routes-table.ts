import { appRouter } from '../../http/router.ts'
import { type Callers, proceduresOf, routesOf } from '../../platform/api/procedure.ts'
import { EDGE_CELLS, PROCEDURE_CELLS } from './matrix.ts'
import { procedureOf } from './recipes.ts'

/** The rows of the specification's endpoint table, in its order. */
export const SPECIFIED = [
  'GET /offers',
  'POST /offers',
  'PATCH /offers/:id',
  'PATCH /offers/:id/status',
  'POST /offers/:id/applications',
  'GET /offers/:id/applications',
  'PATCH /applications/:id',
  'GET /affiliate-links/:slug',
  'GET /go/:slug',
  'GET /sales',
  'GET /payouts',
  'GET /billing-cycles',
  'GET /admin/flagged',
  'POST /admin/offers/:id/vet',
  'POST /admin/users/:id/suspend',
  'POST /webhooks/store-sales',
  'POST /webhooks/processor',
  'POST /jobs/export',
]

export interface RouteRow {
  route: string
  /** The procedure behind it, or the file of what is none. */
  answeredBy: string
  callers: string
  /** From server/. */
  test: string
  /** How the test names what it calls: one of these stands in it. */
  mentions: readonly string[]
}

/** Where each group of procedures is tested, beside the matrix; a procedure's own entry goes before its group's. */
const TESTS: Record<string, string> = {
  auth: 'users/users.test.ts',
  'auth.requestPasswordReset': 'users/account-recovery.test.ts',
  'auth.resetPassword': 'users/account-recovery.test.ts',
  'auth.verifyEmail': 'users/account-recovery.test.ts',
  'auth.resendVerification': 'users/account-recovery.test.ts',
  'auth.listSessions': 'users/sessions.test.ts',
  'auth.endSession': 'users/sessions.test.ts',
  'auth.endOtherSessions': 'users/sessions.test.ts',
  'auth.startTotp': 'users/second-factor.test.ts',
  'auth.confirmTotp': 'users/second-factor.test.ts',
  'auth.renewRecoveryCodes': 'users/second-factor.test.ts',
  'auth.disableTotp': 'users/second-factor.test.ts',
  'auth.stepUp': 'users/second-factor.test.ts',
  'auth.createApiKey': 'users/api-keys.test.ts',
  'auth.listApiKeys': 'users/api-keys.test.ts',
  'auth.deleteApiKey': 'users/api-keys.test.ts',
  users: 'users/users.test.ts',
  'users.notifications': 'notifications/channels/mail/notifications.test.ts',
  'users.updateNotifications': 'notifications/channels/mail/notifications.test.ts',
  stores: 'stores/stores.test.ts',
  offers: 'offers/offers.test.ts',
  'offers.list': 'offers/catalogue.test.ts',
  'offers.categories': 'offers/catalogue.test.ts',
  applications: 'applications/applications.test.ts',
  links: 'links/links.test.ts',
  'links.setCoupon': 'links/coupons.test.ts',
  sales: 'sales/sales.test.ts',
  'sales.requestCredit': 'flags/admin-routes.test.ts',
  pendingOrders: 'pending-orders/pending-orders.test.ts',
  payouts: 'payouts/payouts.test.ts',
  billing: 'billing/billing.procedures.test.ts',
  admin: 'flags/admin-routes.test.ts',
  'admin.listUsers': 'users/suspension-effects.test.ts',
  'admin.previewSuspension': 'users/suspension-effects.test.ts',
  'admin.suspendUser': 'users/suspension-effects.test.ts',
  'admin.reinstateUser': 'users/suspension-effects.test.ts',
  jobs: 'exports/exports.test.ts',
  summaries: 'reports/summaries.test.ts',
  'summaries.series': 'reports/series.test.ts',
  live: 'reports/live.test.ts',
  webhooks: 'notifications/channels/webhooks/endpoints.test.ts',
}

/** What is no procedure: the file in `http/` that answers, whose test stands beside it, and who may call. */
const EDGES: Record<string, readonly [file: string, callers?: string, test?: string]> = {
  'GET /go/:slug': ['redirect'],
  'GET /jobs/:id/file': ['job-file', 'its starter'],
  'POST /webhooks/store-sales': ['webhooks/webhooks', 'store, signed', 'webhooks/webhook-intake'],
  'POST /webhooks/processor': ['webhooks/webhooks', 'processor, signed', 'server'],
  'GET /': ['docs'],
  'GET /store.js': ['store-script'],
  'GET /client.tgz': ['client-package'],
  'GET /healthz': ['server'],
  'GET /readyz': ['server'],
  'GET /metrics': ['metrics/metrics', 'METRICS_TOKEN, or this machine outside production'],
  'GET /.well-known/security.txt': ['docs'],
  'GET /openapi.json': ['server'],
  'GET /account/verify-email': ['account-pages'],
  'GET /account/reset-password': ['account-pages'],
  'GET /account/unsubscribe': ['account-pages', 'public', 'unsubscribe'],
  'POST /account/unsubscribe': ['account-pages', 'public', 'unsubscribe'],
  'GET /app': ['portal'],
  'GET /app/': ['portal'],
  'GET /app/*': ['portal'],
  'GET /docs': ['docs'],
  'GET /docs/guides': ['guides/guides'],
  'GET /docs/guides/:name': ['guides/guides'],
}

/** Every route, those of the specification first and in its order. Throws for an undeclared route. */
export function routeRows(): RouteRow[] {
  const procedures = proceduresOf(appRouter).flatMap((record): RouteRow[] => {
    const { name, meta } = record
    const [group = ''] = name.split('.')
    const test = TESTS[name] ?? TESTS[group]
    if (!test) throw new Error(`${name}: no test is declared in routes-table.ts`)
    const own = name.slice(group.length + 1)
    const mentions = [
      `.${own}(`,
      `.${own}.`,
      `/trpc/${name}`,
      ...(meta.rest ? [beforeParameters(meta.rest.path)] : []),
    ]
    const routes = meta.rest
      ? routesOf(record).map(({ method, path }) => `${method} ${path}`)
      : [`/trpc/${name}`]
    return routes.map((route) => {
      return { route, answeredBy: name, callers: callersText(meta.callers), test, mentions }
    })
  })
  const edges = [...new Set([...EDGE_CELLS.keys()].map(procedureOf))].filter(
    (route) => !/^GET \/(?:docs|account)\/.*\.\w+$/.test(route),
  )
  const rest = edges.map((route): RouteRow => {
    const edge = EDGES[route]
    if (!edge) throw new Error(`${route}: no test is declared in routes-table.ts`)
    const [file, callers = 'public', test = file] = edge
    const mentions = [beforeParameters(route.split(' ')[1] ?? '')]
    return { route, answeredBy: `http/${file}.ts`, callers, test: `http/${test}.test.ts`, mentions }
  })
  const rows = [...procedures, ...rest]
  return [
    ...SPECIFIED.flatMap((route) => rows.filter((row) => row.route === route)),
    ...rows.filter(({ route }) => !SPECIFIED.includes(route)),
  ]
}

function beforeParameters(path: string): string {
  return path.replace(/[:*].*/, '')
}

function callersText(callers: Callers): string {
  return callers === 'public' ? 'public' : callers.join(', ')
}

export const OPENING = '<!-- routes -->'
export const CLOSING = '<!-- /routes -->'

/** The table as it stands in ARCHITECTURE.md, with its markers. */
export function renderRoutes(): string {
  const rows = routeRows()
  const lines = rows.map(
    ({ route, answeredBy, callers, test }, n) =>
      `| ${n < SPECIFIED.length ? n + 1 : ''} | \`${route}\` | ${answeredBy.includes('/') ? `\`${answeredBy}\`` : answeredBy} | ${callers} | \`${test}\` |`,
  )
  const cells = [...PROCEDURE_CELLS.values(), ...EDGE_CELLS.values()]
  return [
    OPENING,
    '',
    `The first ${SPECIFIED.length} are the rows of the specification. What each caller gets on each of them, over REST and tRPC, stands in`,
    `\`test/authorization/matrix.ts\` (${cells.length} rows), whose test calls every cell; all are fuzzed by \`test/fuzz/\`. Paths from \`server/\`.`,
    '',
    '| | route | procedure | callers | test |',
    '|---|---|---|---|---|',
    ...lines,
    '',
    CLOSING,
  ].join('\n')
}

/** The text with the present table between its markers. Throws when it has no markers. */
export function withRoutes(text: string): string {
  const [from, to] = [text.indexOf(OPENING), text.indexOf(CLOSING)]
  if (from === -1 || to < from) throw new Error(`the text has no ${OPENING} … ${CLOSING}`)
  return text.slice(0, from) + renderRoutes() + text.slice(to + CLOSING.length)
}
