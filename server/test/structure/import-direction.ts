import { type Import, isTest, type SourceTree, type Violation } from './source-tree.ts'

const DIRECTION = 'edge → procedures → service → { rule, store } → platform → shared'

/** A layer may import layers of the same or a lower rank. */
const RANK = {
  edge: 5,
  procedures: 4,
  service: 3,
  rule: 2,
  store: 2,
  entity: 2,
  part: 2,
  platform: 1,
  shared: 0,
} as const

type Layer = keyof typeof RANK

interface Place {
  layer: Layer
  /** The folder under server/ that the file belongs to; `null` elsewhere. */
  concept: string | null
}

const SUFFIX = /\.(procedures|service|rule|store|entity)\.ts$/

/** Collects the tables of all concepts: the only file that imports every entity. */
const SCHEMA = 'server/schema.ts'
/** The typed client imports the router's type and nothing else of the server. */
const CLIENT = { folder: 'shared/client/', router: 'server/http/router.ts' }
/** The independent model that the services are compared with. */
const ORACLE = 'server/test/oracle/'
/** The only concepts that read other concepts' tables. */
const READS_ACROSS = ['reports', 'verification']
/** Code that production may not import. */
const TEST_SUPPORT = /^(?:scripts|server\/test|cli\/test)\//
/** Wires the services, including the journal. */
const COMPOSITION_ROOT = 'server/app.ts'

/** The layer of a production file; `null` for tests, test support, scripts and fixtures. */
export function placeOf(path: string): Place | null {
  const [top, folder = '', ...rest] = path.split('/')
  if (isTest(path) || !top || !['server', 'cli', 'shared'].includes(top) || folder === 'test') return null
  if (top === 'shared') return { layer: 'shared', concept: null }
  if (top === 'cli' || rest.length === 0) return { layer: 'edge', concept: null }
  if (folder === 'platform' || folder === 'migrations') return { layer: 'platform', concept: null }
  if (folder === 'verification') return { layer: 'service', concept: folder }
  const suffix = SUFFIX.exec(path)?.[1] as Layer | undefined
  const plain = folder === 'http' || folder === 'jobs' ? 'edge' : 'part'
  return { layer: suffix ?? plain, concept: folder }
}

/** Imports against the import direction, or of another concept's internals. */
export function findImportViolations(tree: SourceTree): Violation[] {
  return tree.flatMap(({ path, imports }) => {
    if (path.startsWith(ORACLE) && !isTest(path)) return imports.flatMap((link) => importOfOracle(path, link))
    const from = placeOf(path)
    if (!from) return []
    return imports.flatMap((link) => {
      const why = whyForbidden(path, from, link)
      return why
        ? [{ path, line: link.line, why: `imports ${link.target}: ${why} (import direction: ${DIRECTION})` }]
        : []
    })
  })
}

function importOfOracle(path: string, { target, line }: Import): Violation[] {
  if (target.startsWith(ORACLE)) return []
  return [{ path, line, why: `imports ${target}: the oracle must not share code with what it checks` }]
}

function whyForbidden(path: string, from: Place, link: Import): string | null {
  if (isTest(link.target) || TEST_SUPPORT.test(link.target))
    return 'production code may not import tests, test support or scripts'
  const to = placeOf(link.target)
  if (!to || isExempt(path, from, to, link)) return null
  if (from.layer === 'shared' && to.layer !== 'shared') return 'shared/ may not import server or cli'
  if (from.layer === 'platform' && RANK[to.layer] > RANK.platform) return 'platform/ may not import a concept'
  return (
    whyNotOwned(from, to) ??
    whyNotLedger(from, to, link) ??
    (RANK[to.layer] > RANK[from.layer] ? `${named(from)} may not import ${named(to)}, a higher layer` : null)
  )
}

function isExempt(path: string, from: Place, to: Place, { target, typeOnly }: Import): boolean {
  if (path === SCHEMA) return to.layer === 'entity'
  if (path.startsWith(CLIENT.folder)) return typeOnly && target === CLIENT.router
  // A foreign key names the table of another concept.
  if (from.layer === 'entity' && to.layer === 'entity') return true
  // Types of a service's records may be used anywhere above platform/.
  if (typeOnly && to.layer === 'service') return RANK[from.layer] > RANK.platform
  return path === COMPOSITION_ROOT && to.concept === 'ledger' && to.layer === 'service'
}

function whyNotOwned(from: Place, to: Place): string | null {
  if (to.layer !== 'store' && to.layer !== 'entity') return null
  if (from.concept && READS_ACROSS.includes(from.concept)) return null
  if (from.concept !== to.concept) return `only ${to.concept} may access its rows; call its service`
  if (from.layer === 'procedures') return `a procedure must call the service of ${to.concept}`
  return null
}

function whyNotLedger(from: Place, to: Place, { target, typeOnly }: Import): string | null {
  if (to.concept !== 'ledger' || from.concept === 'ledger' || typeOnly || from.layer === 'service')
    return null
  if (target.startsWith('server/ledger/seals/')) return null
  return 'only services may use the journal'
}

function named({ layer, concept }: Place): string {
  if (layer === 'platform' || layer === 'shared') return `${layer}/`
  return `${layer === 'edge' || layer === 'entity' ? 'an' : 'a'} ${layer}${concept ? ` of ${concept}` : ''}`
}
