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
  'admin.suspendUser': 'users/suspension-effects.test.ts',
  'admin.reinstateUser': 'users/suspension-effects.test.ts',
  jobs: 'exports/exports.test.ts',
  summaries: 'reports/summaries.test.ts',
  'summaries.series': 'reports/series.test.ts',
  live: 'reports/live.test.ts',
  webhooks: 'notifications/channels/webhooks/endpoints.test.ts',
}

/** What is no procedure: the file that answers, and its test. */
const EDGES: Record<string, { file: string; test: string; callers: string }> = {
  'GET /go/:slug': { file: 'http/redirect.ts', test: 'http/redirect.test.ts', callers: 'public' },
  'GET /jobs/:id/file': { file: 'http/job-file.ts', test: 'http/job-file.test.ts', callers: 'its starter' },
  'POST /webhooks/store-sales': {
    file: 'http/webhooks/webhooks.ts',
    test: 'http/webhooks/webhook-intake.test.ts',
    callers: 'store, signed',
  },
  'POST /webhooks/processor': {
    file: 'http/webhooks/webhooks.ts',
    test: 'http/server.test.ts',
    callers: 'processor, signed',
  },
  'GET /': { file: 'http/docs.ts', test: 'http/docs.test.ts', callers: 'public' },
  'GET /store.js': { file: 'http/store-script.ts', test: 'http/store-script.test.ts', callers: 'public' },
  'GET /client.tgz': {
    file: 'http/client-package.ts',
    test: 'http/client-package.test.ts',
    callers: 'public',
  },
  'GET /healthz': { file: 'http/server.ts', test: 'http/server.test.ts', callers: 'public' },
  'GET /readyz': { file: 'http/server.ts', test: 'http/server.test.ts', callers: 'public' },
  'GET /metrics': {
    file: 'http/metrics/metrics.ts',
    test: 'http/metrics/metrics.test.ts',
    callers: 'METRICS_TOKEN, or this machine outside production',
  },
  'GET /.well-known/security.txt': { file: 'http/docs.ts', test: 'http/docs.test.ts', callers: 'public' },
  'GET /openapi.json': { file: 'http/server.ts', test: 'http/server.test.ts', callers: 'public' },
  'GET /account/verify-email': {
    file: 'http/account-pages.ts',
    test: 'http/account-pages.test.ts',
    callers: 'public',
  },
  'GET /account/reset-password': {
    file: 'http/account-pages.ts',
    test: 'http/account-pages.test.ts',
    callers: 'public',
  },
  'GET /account/unsubscribe': {
    file: 'http/account-pages.ts',
    test: 'http/unsubscribe.test.ts',
    callers: 'public',
  },
  'POST /account/unsubscribe': {
    file: 'http/account-pages.ts',
    test: 'http/unsubscribe.test.ts',
    callers: 'public',
  },
  ...Object.fromEntries(
    ['/app', '/app/', '/app/*'].map((path) => [
      `GET ${path}`,
      { file: 'http/portal.ts', test: 'http/portal.test.ts', callers: 'public' },
    ]),
  ),
  'GET /docs': { file: 'http/docs.ts', test: 'http/docs.test.ts', callers: 'public' },
  'GET /docs/guides': {
    file: 'http/guides/guides.ts',
    test: 'http/guides/guides.test.ts',
    callers: 'public',
  },
  'GET /docs/guides/:name': {
    file: 'http/guides/guides.ts',
    test: 'http/guides/guides.test.ts',
    callers: 'public',
  },
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
    const [, path = ''] = route.split(' ')
    return {
      route,
      answeredBy: edge.file,
      callers: edge.callers,
      test: edge.test,
      mentions: [beforeParameters(path)],
    }
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
