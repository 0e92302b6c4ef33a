import { readFile } from 'node:fs/promises'
import { join, posix } from 'node:path'
import { listFiles, TEST_ROOTS } from '../../../scripts/testing/find-tests.ts'
import { lineAt, type SplitSource, splitSource } from './source-text.ts'

export interface SourceFile extends SplitSource {
  /** From the repository's root. */
  path: string
  text: string
  imports: Import[]
}

export interface Import {
  line: number
  /** A path from the repository's root for a relative import, else the package as written. */
  target: string
  /** Removed with the types: loads nothing. */
  typeOnly: boolean
}

export type SourceTree = SourceFile[]

/** A place that breaks a rule of the repository. */
export interface Violation {
  path: string
  line: number
  why: string
}

/** The TypeScript sources of the repository. */
export async function readTree(root: string): Promise<SourceTree> {
  const paths = (await listFiles(root, TEST_ROOTS)).filter((path) => /\.tsx?$/.test(path))
  return Promise.all(paths.map(async (path) => readSource(path, await readFile(join(root, path), 'utf8'))))
}

/** The guides, decisions and other pages of the repository. All of their text counts as comments. */
export async function readPages(root: string): Promise<SourceTree> {
  const below = await listFiles(root, TEST_ROOTS)
  const paths = ['README.md', 'CHANGELOG.md', ...below.filter((path) => path.endsWith('.md'))]
  return Promise.all(
    paths.map(async (path) => {
      const text = await readFile(join(root, path), 'utf8')
      return { path, text, code: '', comments: text, literals: '', imports: [] }
    }),
  )
}

/** A tree of invented sources. */
export function treeOf(files: Record<string, string>): SourceTree {
  return Object.entries(files).map(([path, text]) => readSource(path, text))
}

export function isTest(path: string): boolean {
  return path.endsWith('.test.ts')
}

/** Every place where the code (not its comments and strings) matches. The pattern has the flag `g`. */
export function violationsIn(file: SourceFile, pattern: RegExp, why: (match: string) => string): Violation[] {
  return [...file.code.matchAll(pattern)].map((match) => ({
    path: file.path,
    line: lineAt(file.code, match.index),
    why: why(match[0].replace(/\s+/g, ' ').trim()),
  }))
}

function readSource(path: string, text: string): SourceFile {
  const split = splitSource(path, text)
  return { path, text, ...split, imports: readImports(path, text, split.code) }
}

const NAMES = String.raw`(?:[\w$]+|\*\s*as\s+[\w$]+|\{[^}]*\})`
const IMPORTS = new RegExp(
  [
    String.raw`\bimport\s+(?<importType>type\s+)?${NAMES}(?:\s*,\s*${NAMES})?\s*from\s*['"]`,
    String.raw`\bexport\s+(?<exportType>type\s+)?(?:\*(?:\s*as\s+[\w$]+)?|\{[^}]*\})\s*from\s*['"]`,
    String.raw`(?<asType>\btypeof\s+)?\bimport\s*\(\s*['"${'`'}]`,
    String.raw`\bimport\s*['"]`,
  ].join('|'),
  'g',
)

function readImports(path: string, text: string, code: string): Import[] {
  return [...code.matchAll(IMPORTS)].map((match) => {
    const start = match.index + match[0].length
    const specifier = text.slice(start, text.indexOf(text.charAt(start - 1), start))
    const { importType, exportType, asType } = match.groups ?? {}
    return {
      line: lineAt(text, start),
      target: specifier.startsWith('.') ? posix.join(posix.dirname(path), specifier) : specifier,
      typeOnly: Boolean(importType ?? exportType ?? asType),
    }
  })
}
