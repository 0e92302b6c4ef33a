import { displayMoney, parseMoney } from '../index.ts'
import names from './names.json' with { type: 'json' }
import { kept, store } from './state.ts'

const LANGUAGE = 'portal.language'
const urdu: Record<string, string> = {}
/** What the service says: sentences, with `{name}` for a value, and codes for all others that it refuses with. */
const service = new Map<string, { pattern: RegExp; text: string }>()

export const language = store<'en' | 'ur'>('en')

type Values = Record<string, string | number>

/**
 * The text in the current language. `{name}` stands for a value, which is isolated: names of others must not turn the sentence around. Keys
 * are literals, so that a test finds those without an Urdu text.
 */
export const t = (english: string, values?: Values): string =>
  filled((language.get() === 'ur' && urdu[english]) || english, values)

const filled = (text: string, values: Values = {}) =>
  text.replace(/\{(\w+)\}/g, (whole, name: string) => `\u2068${values[name] ?? whole}\u2069`)

/** A sentence of the service in the current language: by its words, else by the code of its problem. */
export function translated(sentence: string, code = ''): string {
  if (language.get() === 'en') return sentence
  for (const { pattern, text } of service.values()) {
    const found = pattern.exec(sentence)
    const values = Object.entries(found?.groups ?? {}).map(([name, value]) => [name, translated(value)])
    if (found) return filled(text, Object.fromEntries(values))
  }
  return urdu[sentence] ?? urdu[sentenceOf(sentence)] ?? service.get(code)?.text ?? sentence
}

/** A name of the wire that has no text, such as `late_orders`, as a start of a sentence. */
const sentenceOf = (name: string) =>
  /^[a-z_]+$/.test(name) ? name.charAt(0).toUpperCase() + name.slice(1).replaceAll('_', ' ') : name

/** Marks a text that is shown with `t` elsewhere. */
export const key = (english: string): string => english

export async function setLanguage(chosen: 'en' | 'ur'): Promise<void> {
  if (chosen === 'ur') addTexts(await import('./urdu.ts'))
  kept.set(LANGUAGE, chosen)
  Object.assign(document.documentElement, { lang: chosen, dir: chosen === 'ur' ? 'rtl' : 'ltr' })
  language.set(chosen)
}

/** The language of the last visit, else the browser's. */
export const startLanguage = (): Promise<void> =>
  setLanguage((kept.get<string>(LANGUAGE) ?? navigator.language).startsWith('ur') ? 'ur' : 'en')

/** How a value of the wire is asked for and shown; `lines` and `checks` are lists. */
export type Kind = Typed | 'said' | 'number' | 'percent' | 'money' | 'count' | Moment | 'word' | 'hidden'
type Moment = 'time' | 'date'
type Typed = 'text' | 'email' | 'password' | 'url' | 'search' | 'textarea' | 'lines' | Choices
type Choices = 'select' | 'checkbox' | 'checks'

type Facts = Record<string, readonly string[]>
/**
 * Of fields of the wire: label, kind and autocomplete; the values that they offer, unless a list or screen says others. Of values: what
 * they are called, and their tone, which is `good`, `warn` or `bad`.
 */
const { fields, options, words }: Record<'fields' | 'options' | 'words', Facts> = names
/** What people must know to fill in a field. */
const hints: Record<string, string> = names.hints

interface Texts {
  urdu: Record<string, string>
  service: Record<string, string>
  fields?: Facts
  words?: Facts
}

/** Adds the texts of a language or a screen, which is loaded when it is needed. */
export function addTexts(more: Texts): void {
  Object.assign(urdu, more.urdu)
  Object.assign(fields, more.fields)
  Object.assign(words, more.words)
  for (const [english, text] of Object.entries(more.service)) {
    const pattern = english.replaceAll(/[.*+?()[\]|\\^$]/g, '\\$&').replaceAll(/\{(\w+)\}/g, '(?<$1>.+?)')
    service.set(english, { pattern: new RegExp(`^${pattern}$`), text })
  }
}

/** The list of offers, and what the status of an application to one means. */
export const { catalogue: CATALOGUE, standing: STANDING } = names

/** What is known of a field of the wire, in the current language. */
export function fieldOf(name: string) {
  const [label = words[name]?.[0] ?? sentenceOf(name), kind, autocomplete] = fields[name] ?? []
  const type = (kind ?? (name.endsWith('_at') ? 'time' : 'text')) as Kind
  return { label: t(label), type, autocomplete, hint: t(hints[name] ?? ''), options: options[name] }
}

/** An enum value of the wire for people. */
export const word = (value: string): string => t(words[value]?.[0] ?? sentenceOf(value))

export const toneOf = (value: string): string => words[value]?.[1] ?? ''

/** An amount of the wire, such as `1250.00`, for people. */
export function money(amount: string): string {
  const paisa = parseMoney(amount)
  return paisa === null ? amount : displayMoney(paisa)
}

const locale = () => (language.get() === 'ur' ? 'ur-PK' : 'en-GB')

export const count = (value: number): string => new Intl.NumberFormat(locale()).format(value)

export const percent = (value: number): string => `${value}%`

const PAKISTAN = 'Asia/Karachi'
const dates = (timeZone: string, style: Intl.DateTimeFormatOptions) =>
  new Intl.DateTimeFormat(locale(), { timeZone, ...style })

/** A moment of the wire in Pakistan's time. */
export const when = (at: string, kind?: 'date'): string =>
  dates(PAKISTAN, { dateStyle: 'medium', timeStyle: kind ? undefined : 'short' }).format(new Date(at))

/** A period of the wire, whose end is exclusive, in days. */
export const period = (from: string, to: string): string =>
  dates(PAKISTAN, { dateStyle: 'medium' }).formatRange(new Date(from), new Date(Date.parse(to) - 1))

/** A day such as 20 Nov. Seconds since 1970 of its midnight in UTC. */
export const dayAndMonth = (seconds: number): string =>
  dates('UTC', { day: 'numeric', month: 'short' }).format(seconds * 1000)
