import { isTest, type SourceFile, type SourceTree, type Violation, violationsIn } from './source-tree.ts'

const IMPURE: [pattern: RegExp, what: string][] = [
  [/(?<![.\w$])(?:async|await)\b/g, 'is asynchronous'],
  [/(?<![.\w$])Promise\b/g, 'is asynchronous'],
  [
    /\bDate\s*\.\s*now\b|\bnew\s+Date\b(?!\s*\(\s*[^\s)])|(?<!new\s+)(?<![.\w$])Date\s*\(/g,
    'reads the clock',
  ],
  [/\bDateTime\s*\.\s*now\b|\bDateTime\s*\.\s*(?:local|utc)\s*\(\s*\)/g, 'reads the clock'],
  [/(?<![.\w$])performance\b/g, 'reads the clock'],
  [/\bMath\s*\.\s*random\b|(?<![.\w$])crypto\b|\brandom(?:UUID|Bytes|Int)\b/g, 'uses randomness'],
  [/(?<![.\w$])process\s*[.?[]|(?<![.\w$])globalThis\b/g, 'reads its process'],
  [/(?<![.\w$])(?:fetch|setTimeout|setInterval|setImmediate|queueMicrotask|console)\b/g, 'has side effects'],
  [/^(?:export\s+)?(?:let|var)\b/gm, 'keeps state between calls'],
]

/** A rule maps facts to a decision. Reports code in `*.rule.ts` files that could make two calls differ. */
export function findImpureRules(tree: SourceTree): Violation[] {
  return tree
    .filter(({ path }) => path.endsWith('.rule.ts') && !isTest(path))
    .flatMap((file) => [
      ...IMPURE.flatMap(([pattern, what]) =>
        violationsIn(file, pattern, (match) => `"${match}": a rule that ${what}`),
      ),
      ...findImpureImports(file),
    ])
}

function findImpureImports({ path, imports }: SourceFile): Violation[] {
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
