import { type Breach, type Import, isTest, type SourceTree } from './source-tree.ts'

export const ROAD = 'edge → procedures → service → { rule, store } → platform → shared'

/** Higher may import lower or equal, never the other way round. */
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
  /** The folder under server/ whose business the file is; `null` outside of server/'s folders. */
  concept: string | null
}

const SUFFIX = /\.(procedures|service|rule|store|entity)\.ts$/

/** Collects the tables of all concepts, so it alone in platform/ knows them. */
const SCHEMA = 'server/platform/schema.ts'
/** Procedures are made with the builders of the edge, which knows their context. */
const PROCEDURE_BASE = ['server/http/trpc.ts', 'server/http/context.ts']
/** The typed client has the router's type and nothing else of the server. */
const CLIENT = { path: 'shared/client.ts', router: 'server/http/router.ts' }
/** The model that the services are compared with stands on nothing but itself. */
const ORACLE = 'server/proof/oracle/'
/** Puts the services together, so it hands the journal to those that write it. */
const COMPOSITION_ROOT = 'server/app.ts'

/** Where a file stands on the road; `null` for what stands beside it: tests, proofs, scripts and fixtures. */
export function placeOf(path: string): Place | null {
  const [top, folder = '', ...rest] = path.split('/')
  if (isTest(path) || !top || !['server', 'cli', 'shared'].includes(top) || folder === 'proof') return null
  if (top === 'shared') return { layer: 'shared', concept: null }
  if (top === 'cli' || rest.length === 0) return { layer: 'edge', concept: null }
  if (folder === 'platform' || folder === 'migrations') return { layer: 'platform', concept: null }
  const suffix = SUFFIX.exec(path)?.[1] as Layer | undefined
  const plain = folder === 'http' || folder === 'jobs' ? 'edge' : 'part'
  return { layer: suffix ?? plain, concept: folder }
}

/** Every import against the one-way road, or into what belongs to another concept. */
export function findRoadBreaches(tree: SourceTree): Breach[] {
  return tree.flatMap(({ path, imports }) => {
    if (path.startsWith(ORACLE) && !isTest(path))
      return imports.flatMap((link) => foreignToOracle(path, link))
    const from = placeOf(path)
    if (!from) return []
    return imports.flatMap((link) => {
      const why = objectionTo(path, from, link)
      return why ? [{ path, line: link.line, why: `imports ${link.target}: ${why} (the road: ${ROAD})` }] : []
    })
  })
}

function foreignToOracle(path: string, { target, line }: Import): Breach[] {
  if (target.startsWith(ORACLE)) return []
  return [{ path, line, why: `imports ${target}: the oracle shares nothing with what it judges` }]
}

function objectionTo(path: string, from: Place, link: Import): string | null {
  if (isTest(link.target) || link.target.startsWith('scripts/'))
    return 'what runs in production needs no test or script'
  const to = placeOf(link.target)
  if (!to || isExempt(path, from, to, link)) return null
  if (from.layer === 'shared' && to.layer !== 'shared') return 'shared/ knows neither server nor cli'
  if (from.layer === 'platform' && RANK[to.layer] > RANK.platform) return 'platform/ knows no concept'
  return (
    objectionToOwnership(from, to) ??
    objectionToLedger(from, to, link) ??
    (RANK[to.layer] > RANK[from.layer]
      ? `${named(from)} may not import ${named(to)}, it stands further up`
      : null)
  )
}

function isExempt(path: string, from: Place, to: Place, { target, typeOnly }: Import): boolean {
  if (path === SCHEMA) return to.layer === 'entity'
  if (path === CLIENT.path) return typeOnly && target === CLIENT.router
  // A foreign key names the table of another concept.
  if (from.layer === 'entity' && to.layer === 'entity') return true
  if (from.layer === 'procedures' && PROCEDURE_BASE.includes(target)) return true
  // The records that a service takes and gives may be named by whoever handles them.
  if (typeOnly && to.layer === 'service') return RANK[from.layer] > RANK.platform
  return path === COMPOSITION_ROOT && to.concept === 'ledger' && to.layer === 'service'
}

function objectionToOwnership(from: Place, to: Place): string | null {
  if (to.layer !== 'store' && to.layer !== 'entity') return null
  if (from.concept !== to.concept)
    return `the rows of ${to.concept} belong to ${to.concept}; call its service`
  if (from.layer === 'procedures') return `a procedure asks the service of ${to.concept}, not its rows`
  return null
}

function objectionToLedger(from: Place, to: Place, { typeOnly }: Import): string | null {
  if (to.concept !== 'ledger' || from.concept === 'ledger' || typeOnly || from.layer === 'service')
    return null
  return 'the journal is used by services only'
}

function named({ layer, concept }: Place): string {
  if (layer === 'platform' || layer === 'shared') return `${layer}/`
  return `${layer === 'edge' || layer === 'entity' ? 'an' : 'a'} ${layer}${concept ? ` of ${concept}` : ''}`
}
