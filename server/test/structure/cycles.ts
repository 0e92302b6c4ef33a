import { isTest, type SourceTree, type Violation } from './source-tree.ts'

interface Edge {
  target: string
  line: number
}

/** Import cycles, each reported once. Type-only imports count: two files that need each other's types are one subject. */
export function findCycles(tree: SourceTree): Violation[] {
  const graph = new Map<string, Edge[]>(tree.map(({ path, imports }) => [path, imports]))
  const violations: Violation[] = []
  const done = new Set<string>()
  const trail: string[] = []
  const visit = (path: string) => {
    trail.push(path)
    for (const { target, line } of graph.get(path) ?? []) {
      const start = trail.indexOf(target)
      if (start !== -1) {
        const cycle = [...trail.slice(start), target].join(' → ')
        violations.push({ path, line, why: `closes an import cycle: ${cycle}` })
      } else if (graph.has(target) && !done.has(target)) visit(target)
    }
    trail.pop()
    done.add(path)
  }
  for (const path of graph.keys()) if (!done.has(path)) visit(path)
  return violations
}

/** The pairs of folders that may import each other, each with the reason. At most four. */
const MUTUAL_FOLDERS: Record<string, string> = {
  'applications links': 'an approval makes a link, and a link names its application',
  'notifications users': 'log-ins and new destinations are notified, and an event names its account',
  'offers stores': 'an offer needs a store to go live, and removing a store pauses offers',
}

/** Folders of `server/` that import each other: neither can be read, moved or tested alone. Type-only imports count. */
export function findMutualFolders(tree: SourceTree): Violation[] {
  const folderOf = (path: string) => /^server\/([^/]+)\//.exec(path)?.[1]
  const links = tree
    .filter(({ path }) => !isTest(path) && folderOf(path) !== 'test')
    .flatMap(({ path, imports }) =>
      imports.map(({ target, line }) => ({ path, line, from: folderOf(path), to: folderOf(target) })),
    )
  const imported = new Set(links.map(({ from, to }) => `${from} ${to}`))
  return links
    .filter(({ from, to }) => from && to && from !== to && imported.has(`${to} ${from}`))
    .filter(({ from, to }) => !MUTUAL_FOLDERS[[from, to].sort().join(' ')])
    .filter(({ from, to }, at, all) => all.findIndex((one) => one.from === to && one.to === from) > at)
    .map(({ path, line, from, to }) => ({ path, line, why: `${from}/ and ${to}/ import each other` }))
}
