import names from './names.json' with { type: 'json' }
import { sentenceOf, t } from './text.ts'

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
