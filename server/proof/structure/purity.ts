import { type Breach, breachesIn, isTest, type SourceFile, type SourceTree } from './source-tree.ts'

const IMPURE: [pattern: RegExp, what: string][] = [
  [/(?<![.\w$])(?:async|await)\b/g, 'waits for something'],
  [/(?<![.\w$])Promise\b/g, 'waits for something'],
  [
    /\bDate\s*\.\s*now\b|\bnew\s+Date\b(?!\s*\(\s*[^\s)])|(?<!new\s+)(?<![.\w$])Date\s*\(/g,
    'reads the clock',
  ],
  [/\bDateTime\s*\.\s*now\b|\bDateTime\s*\.\s*(?:local|utc)\s*\(\s*\)/g, 'reads the clock'],
  [/(?<![.\w$])performance\b/g, 'reads the clock'],
  [/\bMath\s*\.\s*random\b|(?<![.\w$])crypto\b|\brandom(?:UUID|Bytes|Int)\b/g, 'rolls dice'],
  [/(?<![.\w$])process\s*[.?[]|(?<![.\w$])globalThis\b/g, 'looks at its process'],
  [
    /(?<![.\w$])(?:fetch|setTimeout|setInterval|setImmediate|queueMicrotask|console)\b/g,
    'acts on the outside',
  ],
  [/^(?:export\s+)?(?:let|var)\b/gm, 'keeps state between calls'],
]

/** Rules take facts and give a decision: everything in a `*.rule.ts` that could make two calls differ. */
export function findImpureRules(tree: SourceTree): Breach[] {
  return tree
    .filter(({ path }) => path.endsWith('.rule.ts') && !isTest(path))
    .flatMap((file) => [
      ...IMPURE.flatMap(([pattern, what]) =>
        breachesIn(file, pattern, (match) => `"${match}": a rule that ${what}`),
      ),
      ...findImpureImports(file),
    ])
}

function findImpureImports({ path, imports }: SourceFile): Breach[] {
  return imports
    .filter(({ target, typeOnly }) => !typeOnly && !isAllowed(target))
    .map(({ line, target }) => ({
      path,
      line,
      why: `imports ${target}: a rule imports only types, shared/, other rules and luxon`,
    }))
}

function isAllowed(target: string): boolean {
  return (
    target === 'luxon' ||
    target.startsWith('shared/') ||
    (target.endsWith('.rule.ts') && target.includes('/'))
  )
}
