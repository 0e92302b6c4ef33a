import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import { money, t, useLanguage, when } from '../text.ts'
import { WORDS } from '../words.ts'

/** An amount of the wire. */
export function Money({ amount }: { amount: string }) {
  return (
    <bdi dir="ltr" class="money">
      {money(amount)}
    </bdi>
  )
}

/** A moment of the wire, in Pakistan's time. */
export function When({ at, style }: { at: string; style?: 'date' | 'minute' }) {
  useLanguage()
  return <time dateTime={at}>{when(at, style)}</time>
}

/** Text that another account wrote. */
export function Theirs({ children }: { children: string | null | undefined }) {
  return <bdi class="theirs">{children}</bdi>
}

/** A state, reason or kind of the wire as a colored word. */
export function Status({ value }: { value: string }) {
  const [text, tone] = WORDS[value] ?? [value.replaceAll('_', ' '), '']
  return <span class={`status ${tone}`}>{t(text)}</span>
}

/** Names with values beside them; those without a value are left out. */
export function Facts({ items }: { items: [name: string, value: ComponentChildren][] }) {
  return (
    <dl class="facts">
      {items.map(([name, value]) =>
        value === null || value === undefined || value === '' ? null : (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ),
      )}
    </dl>
  )
}

/** Figures in large type. */
export function Figures({ items }: { items: [name: string, value: ComponentChildren, hint?: string][] }) {
  return (
    <dl class="figures">
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

/** A text to take along, with a button that copies it. */
export function Copy({ text, label }: { text: string; label: string }) {
  const [isCopied, setCopied] = useState(false)
  const copy = async () => {
    // Refused on pages without TLS: the text can be selected instead.
    const done = await navigator.clipboard?.writeText(text).then(
      () => true,
      () => false,
    )
    setCopied(done === true)
  }
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
