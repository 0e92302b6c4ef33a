import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import { Link } from '../router.tsx'
import { count, money, percent, t, useLanguage, when } from '../text.ts'
import { fieldOf, type Kind, toneOf, word } from '../words.ts'

/** An amount of the wire. */
export function Money({ amount }: { amount: string }) {
  return (
    <bdi dir="ltr" class="money">
      {money(amount)}
    </bdi>
  )
}

/** A moment of the wire, in Pakistan's time; nothing for none. */
export function When({ at, style }: { at: string | null; style?: 'date' | 'minute' }) {
  useLanguage()
  if (at === null) return null
  return <time dateTime={at}>{when(at, style)}</time>
}

/** Text that another account wrote; with `to`, a link to a screen. */
export function Theirs({ children, to }: { children: string | null | undefined; to?: string }) {
  const text = <bdi class="theirs">{children}</bdi>
  return to ? <Link to={to}>{text}</Link> : text
}

/** A state, reason or kind of the wire as a colored word. */
export function Status({ value }: { value: string }) {
  return <span class={`status ${toneOf(value)}`}>{word(value)}</span>
}

const SHOWN: Partial<Record<Kind, (value: never) => ComponentChildren>> = {
  money: (amount: string) => <Money amount={amount} />,
  percent,
  count,
  time: (at: string) => <When at={at} />,
  date: (at: string) => <When at={at} style="date" />,
  word: (value: string) => <Status value={value} />,
  url: (href: string) => <Outside href={href} />,
  checks: (values: string[]) => values.join(', '),
}

/** A value as its field of the wire is shown; of offers, accounts and stores their name; nothing for none. */
export function Value({ of, name }: { of: object; name: string }) {
  const value = (of as Record<string, never>)[name]
  if (value === null || value === undefined || value === '') return null
  const { title, display_name, shop_domain } = value as Record<string, string>
  const show = SHOWN[fieldOf(name).kind]
  return show ? show(value) : <Theirs>{title ?? display_name ?? shop_domain ?? value}</Theirs>
}

interface FactsProps {
  /** A resource whose fields are named in `items`. */
  of?: object
  items: readonly (string | [name: string, value: ComponentChildren])[]
}

/** Names with values beside them; those without a value are left out. */
export function Facts({ of = {}, items }: FactsProps) {
  const given = items.filter((item) => typeof item !== 'string' || of[item as keyof typeof of] !== null)
  const pairs = given.map((item) =>
    typeof item === 'string'
      ? ([fieldOf(item).label, <Value key={item} of={of} name={item} />] as const)
      : item,
  )
  return <Figures class="facts" items={pairs.filter(([, value]) => value)} />
}

interface FiguresProps {
  items: readonly (readonly [name: string, value: ComponentChildren, hint?: string])[]
  class?: string
}

/** Figures in large type. */
export function Figures({ items, class: name = 'figures' }: FiguresProps) {
  return (
    <dl class={name}>
      {items.map(([name, value, hint]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
          {hint && <dd class="quiet">{hint}</dd>}
        </div>
      ))}
    </dl>
  )
}

/** A text with a button that copies it. */
export function Copy({ text, label }: { text: string; label: string }) {
  const [isCopied, setCopied] = useState(false)
  // Refused on pages without TLS: the text can be selected instead.
  const copy = () =>
    navigator.clipboard?.writeText(text).then(
      () => setCopied(true),
      () => {},
    )
  return (
    <div class="copy">
      <input
        readOnly
        dir="ltr"
        aria-label={label}
        value={text}
        onFocus={(event) => event.currentTarget.select()}
      />
      <button type="button" onClick={() => void copy()}>
        {isCopied ? t('Copied') : t('Copy')}
      </button>
    </div>
  )
}

/** A product's address: a link if it is one of the web, else plain text. */
export function Outside({ href }: { href: string }) {
  if (!/^https?:\/\//i.test(href)) return <bdi class="theirs">{href}</bdi>
  return (
    <a href={href} target="_blank" rel="noopener noreferrer nofollow" class="theirs" dir="ltr">
      {href}
    </a>
  )
}
