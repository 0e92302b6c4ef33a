import { lineAt } from './source-text.ts'
import { type Breach, breachesIn, isTest, type SourceFile, type SourceTree } from './source-tree.ts'

const LONGEST = 400
const KEBAB_FILE = /^[a-z0-9]+(?:-[a-z0-9]+)*(?:\.[a-z0-9]+(?:-[a-z0-9]+)*)*\.ts$/
/** Names that say nothing of what is inside, so that everything ends up there. */
const EMPTY_FOLDER = /^(?:utils?|helpers?|common|misc)$/
const EMPTY_FILE = /^(?:utils?|helpers?|misc)$/
// In pieces, so that this file does not accuse itself.
const UNFINISHED = new RegExp(String.raw`\b(?:TO${'DO'}|FIX${'ME'}|HA${'CK'}|W${'IP'}|TB${'D'})\b`, 'g')
const NOT_THERE = new RegExp(String.raw`\bnot (?:yet )?implem${'ented'}\b`, 'gi')

export function findDefaultExports(tree: SourceTree): Breach[] {
  return tree.flatMap((file) =>
    breachesIn(
      file,
      /\bexport\s+default\b|\bexport\s*\{[^}]*\bas\s+default\b/g,
      () => 'exports by default; name it',
    ),
  )
}

export function findBadNames(tree: SourceTree): Breach[] {
  return tree.flatMap(({ path }) => {
    const folders = path.split('/')
    const name = folders.pop() ?? ''
    const stem = name.replace(/\..*$/, '')
    const empty = [
      ...folders.filter((part) => EMPTY_FOLDER.test(part)),
      ...(EMPTY_FILE.test(stem) ? [stem] : []),
    ]
    return [
      ...(KEBAB_FILE.test(name) ? [] : [{ path, line: 1, why: 'has a file name that is not kebab-case' }]),
      ...empty.map((part) => ({ path, line: 1, why: `"${part}" does not say what is inside` })),
    ]
  })
}

export function findLongFiles(tree: SourceTree): Breach[] {
  return tree.flatMap(({ path, text }) => {
    const lines = text.replace(/\n$/, '').split('\n').length
    return lines > LONGEST ? [{ path, line: LONGEST + 1, why: `has ${lines} lines, ${LONGEST} at most` }] : []
  })
}

/** uvu passes a file whose suites are never run, and leaves out whatever stands beside an `only`. */
export function findTestsNobodyRuns(tree: SourceTree): Breach[] {
  return tree
    .filter(({ path }) => isTest(path))
    .flatMap((file) => [...findUnrunSuites(file), ...findOnly(file)])
}

export function findUnfinishedMarks(tree: SourceTree): Breach[] {
  return tree.flatMap(({ path, text, comments }) =>
    [...comments.matchAll(UNFINISHED), ...text.matchAll(NOT_THERE)].map((match) => ({
      path,
      line: lineAt(text, match.index),
      why: `says "${match[0]}": finish it or open an issue`,
    })),
  )
}

function findUnrunSuites(file: SourceFile): Breach[] {
  const { path, code } = file
  if (!/\.\s*run\s*\(/.test(code)) return [{ path, line: 1, why: 'runs none of its tests: no run()' }]
  const suites = [...code.matchAll(/\b(?:const|let)\s+([\w$]+)\s*=\s*suite\b/g)]
  const plain = [...code.matchAll(/^(test)\s*\(/gm)].slice(0, 1)
  return [...suites, ...plain]
    .filter(
      ([, name = '']) =>
        !new RegExp(String.raw`(?<![\w$])${name.replaceAll('$', '\\$')}\s*\.\s*run\s*\(`).test(code),
    )
    .map(({ index, 1: name }) => ({ path, line: lineAt(code, index), why: `never calls ${name}.run()` }))
}

function findOnly(file: SourceFile): Breach[] {
  return breachesIn(file, /(?<=[\w$])\s*\.\s*only\s*\(/g, () => 'runs only some of its tests: only()')
}
