import type { SourceTree, Violation } from './source-tree.ts'

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
