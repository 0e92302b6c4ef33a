import type { Breach, SourceTree } from './source-tree.ts'

interface Edge {
  target: string
  line: number
}

/** Import cycles, each once, as the way round. Type-only imports load nothing and are no part of one. */
export function findCycles(tree: SourceTree): Breach[] {
  const graph = new Map<string, Edge[]>(
    tree.map(({ path, imports }) => [path, imports.filter(({ typeOnly }) => !typeOnly)]),
  )
  const breaches: Breach[] = []
  const done = new Set<string>()
  const way: string[] = []
  const visit = (path: string) => {
    way.push(path)
    for (const { target, line } of graph.get(path) ?? []) {
      const start = way.indexOf(target)
      if (start !== -1) {
        const round = [...way.slice(start), target].join(' → ')
        breaches.push({ path, line, why: `closes an import cycle: ${round}` })
      } else if (graph.has(target) && !done.has(target)) visit(target)
    }
    way.pop()
    done.add(path)
  }
  for (const path of graph.keys()) if (!done.has(path)) visit(path)
  return breaches
}
