import names from './names.json' with { type: 'json' }
import { sentenceOf, t } from './text.ts'

/** What enum values of the wire are called, and their tone: `good`, `warn` or `bad`. */
const WORDS: Record<string, string[]> = names.words
const TEXTS: Record<'checks' | 'advice' | 'vetting' | 'effects', Record<string, string>> = names
/** What holds if a check of a sale passes; what a store's status, an offer's vetting and a figure of a suspension's preview mean. */
export const { checks: CHECKS, advice: ADVICE, vetting: VETTING, effects: EFFECTS } = TEXTS
export const REJECTION_REASONS = Object.keys(CHECKS)

/** An enum value of the wire for people. */
export const word = (value: string): string => t(WORDS[value]?.[0] ?? sentenceOf(value))

export const toneOf = (value: string): string => WORDS[value]?.[1] ?? ''

/** How a value of the wire is asked for and shown; `lines` and `checks` are lists. */
export type Kind = Texts | 'number' | 'percent' | 'money' | 'count' | 'time' | 'date' | 'word' | 'hidden'
type Texts = 'text' | 'email' | 'password' | 'url' | 'search' | 'textarea' | 'lines' | Choices
type Choices = 'select' | 'checkbox' | 'checks'

/** What fields of the wire are called: label, kind and autocomplete. */
const FIELDS: Record<string, string[]> = names.fields
/** What people must know to fill in a field. */
const HINTS: Record<string, string> = names.hints

/** What is known of a field of the wire, in the current language. */
export function fieldOf(name: string) {
  const [label = sentenceOf(name), kind, autocomplete] = FIELDS[name] ?? []
  const usual: Kind = name.endsWith('_at') ? 'time' : 'text'
  return { label: t(label), kind: (kind as Kind) ?? usual, autocomplete, hint: t(HINTS[name] ?? '') }
}
