import { appRouter } from '../../http/router.ts'
import { proceduresOf, routesOf } from '../../platform/api/procedure.ts'
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

interface RouteRow {
  route: string
  /** The procedure behind it, or the file of what is none. */
  answeredBy: string
  callers: string
  /** From server/. */
  test: string
  /** How the test names what it calls: one of these stands in it. */
  mentions: readonly string[]
}

/** The test of each procedure, or of a group of them, beside the matrix; a procedure's own entry goes before its group's. */
const TESTS: Record<string, string> = {
  'users/users': 'auth users',
  'test/authorization/cookie-session': 'auth.login auth.logout',
  'users/account-recovery':
    'auth.requestPasswordReset auth.resetPassword auth.verifyEmail auth.resendVerification',
  'users/sessions': 'auth.listSessions auth.endSession auth.endOtherSessions',
  'users/second-factor':
    'auth.startTotp auth.confirmTotp auth.renewRecoveryCodes auth.disableTotp auth.stepUp',
  'users/api-keys': 'auth.createApiKey auth.listApiKeys auth.deleteApiKey',
  'http/unsubscribe': 'users.notifications users.updateNotifications',
  'stores/stores': 'stores',
  'offers/offers': 'offers',
  'offers/catalogue': 'offers.list offers.categories',
  'applications/applications': 'applications',
  'links/links': 'links',
  'sales/sales': 'sales',
  'pending-orders/pending-orders': 'pendingOrders',
  'payouts/payouts': 'payouts',
  'billing/billing': 'billing',
  'flags/admin-routes': 'admin sales.requestCredit',
  'users/suspension': 'admin.listUsers admin.previewSuspension admin.suspendUser admin.reinstateUser',
  'exports/exports': 'jobs',
  'reports/summaries': 'summaries',
  'reports/live': 'live',
  'notifications/channels/webhooks/endpoints': 'webhooks',
}

function testOf(name: string): string | undefined {
  const testing = (wanted: string) =>
    Object.entries(TESTS).find(([, names]) => names.split(' ').includes(wanted))?.[0]
  return testing(name) ?? testing(name.split('.')[0] ?? '')
}

/** What is no procedure: the file in `http/` that answers its routes, whose test stands beside it, and who may call. */
const EDGES: [file: string, routes: string, callers?: string, test?: string][] = [
  ['redirect', 'GET /go/:slug'],
  ['job-file', 'GET /jobs/:id/file', 'its starter'],
  ['webhooks/webhooks', 'POST /webhooks/store-sales', 'store, signed', 'webhooks/webhook-intake'],
  ['webhooks/webhooks', 'POST /webhooks/processor', 'processor, signed', 'server'],
  ['docs', 'GET /, GET /.well-known/security.txt, GET /docs'],
  ['store-script', 'GET /store.js'],
  ['client-package', 'GET /client.tgz'],
  ['server', 'GET /healthz, GET /readyz, GET /openapi.json'],
  ['metrics/metrics', 'GET /metrics', 'METRICS_TOKEN, or this machine outside production'],
  ['account-pages', 'GET /account/verify-email, GET /account/reset-password'],
  ['account-pages', 'GET /account/unsubscribe, POST /account/unsubscribe', 'public', 'unsubscribe'],
  ['portal', 'GET /app, GET /app/, GET /app/*'],
  ['guides/guides', 'GET /docs/guides, GET /docs/guides/:name'],
]

/** Every route, those of the specification first and in its order. Throws for an undeclared route. */
export function routeRows(): RouteRow[] {
  const procedures = proceduresOf(appRouter).flatMap((record): RouteRow[] => {
    const { name, meta } = record
    const test = testOf(name)
    if (!test) throw new Error(`${name}: no test is declared in routes-table.ts`)
    const own = name.split('.')[1]
    const mentions = [
      `.${own}(`,
      `.${own}.`,
      `/trpc/${name}`,
      ...(meta.rest ? [beforeParameters(meta.rest.path)] : []),
    ]
    const routes = meta.rest
      ? routesOf(record).map(({ method, path }) => `${method} ${path}`)
      : [`/trpc/${name}`]
    const callers = meta.callers === 'public' ? 'public' : meta.callers.join(', ')
    return routes.map((route) => ({ route, answeredBy: name, callers, test: `${test}.test.ts`, mentions }))
  })
  const edges = [...new Set([...EDGE_CELLS.keys()].map(procedureOf))].filter(
    (route) => !/^GET \/(?:docs|account)\/.*\.\w+$/.test(route),
  )
  const rest = edges.map((route): RouteRow => {
    const edge = EDGES.find(([, routes]) => routes.split(', ').includes(route))
    if (!edge) throw new Error(`${route}: no test is declared in routes-table.ts`)
    const [file, , callers = 'public', test = file] = edge
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

const OPENING = '<!-- routes -->'
const CLOSING = '<!-- /routes -->'

/** The table as it stands in ARCHITECTURE.md, with its markers. */
function renderRoutes(): string {
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
