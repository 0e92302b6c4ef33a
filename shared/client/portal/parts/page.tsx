import { type ComponentChild, type ComponentChildren, Fragment } from 'preact'
import { useEffect, useMemo, useRef, useState } from 'preact/hooks'
import { type Answer, problemOf } from '../client.ts'
import * as text from '../text.ts'
import { fieldOf, type Kind, language, t, toneOf, translated, word } from '../text.ts'

export interface PageProps {
  title: string
  /** One sentence below the title. */
  lead?: ComponentChildren
  /** Buttons and links beside the title. */
  actions?: ComponentChildren
  /** One card in the middle. */
  narrow?: boolean
  children?: ComponentChildren
}

/** A screen: its title, which takes the focus when the screen is opened, and its content. */
export function Page({ title, lead, actions, narrow, children }: PageProps) {
  const heading = useRef<HTMLHeadingElement>(null)
  useEffect(() => heading.current?.focus({ preventScroll: true }), [])
  useEffect(() => void Object.assign(document, { title }), [title])
  return (
    <div class={narrow ? 'page narrow' : 'page'}>
      <header class="head">
        <div>
          <h1 tabIndex={-1} ref={heading}>
            <bdi>{title}</bdi>
          </h1>
          {lead && <p class="quiet">{lead}</p>}
        </div>
        {actions && <div class="actions">{actions}</div>}
      </header>
      {narrow ? <Card>{children}</Card> : children}
    </div>
  )
}

/** A section of a screen, in a box. */
export function Card({ title, actions, children }: Partial<PageProps>) {
  return (
    <section class="card">
      {title && (
        <header class="head">
          <h2>{title}</h2>
          {actions && <div class="actions">{actions}</div>}
        </header>
      )}
      {children}
    </section>
  )
}

interface AnsweredProps<Data> {
  of: Answer<Data> & { reload(): unknown }
  children: (data: Data) => ComponentChildren
}

/** What a query answered, or a placeholder while it loads, or why it failed. */
export function Answered<Data>({ of: { data, error, reload }, children }: AnsweredProps<Data>) {
  const isLoading = data === undefined && !error
  return (
    <>
      <Failed error={error} again={reload} />
      {data !== undefined && children(data)}
      {isLoading && <div class="skeleton" role="status" aria-label={t('Loading')} />}
    </>
  )
}

/** A sentence of the service in the page's language; with the code of a problem, the English one stays below it. */
export function Said({ detail, code }: { detail: string; code?: string | undefined }) {
  const said = translated(detail, code)
  if (said === detail) return <bdi>{said}</bdi>
  return (
    <>
      {said}
      {code && (
        <small lang="en" dir="ltr">
          {detail}
        </small>
      )}
    </>
  )
}

/** Why a call failed; nothing without an error. */
export function Failed({ error, again }: { error?: unknown; again?: () => unknown }) {
  if (!error) return null
  return (
    <div class="notice bad" role="alert">
      <Said {...problemOf(error)} />
      {again && (
        <button type="button" class="plain" onClick={() => void again()}>
          {t('Try again')}
        </button>
      )}
    </div>
  )
}

/** In place of a list without rows: what belongs there, and what to do. */
export function Empty({ title, children }: { title: string; children?: ComponentChildren }) {
  return (
    <div class="empty">
      <strong>{title}</strong>
      {children && <div class="quiet">{children}</div>}
    </div>
  )
}

/** Text that another account wrote; with `href`, a link to a screen. */
export function Theirs({ children, href }: { children: string | null | undefined; href?: string }) {
  const text = <bdi class="theirs">{children}</bdi>
  return href ? <a href={href}>{text}</a> : text
}

/** A link that looks like a button. */
export const LinkButton = ({ href, children }: { href: string; children: string }) => (
  <a class="button main" href={href}>
    {children}
  </a>
)

/** A state, reason or kind of the wire as a colored word. */
export const Status = ({ value }: { value: string }) => (
  <span class={`status ${toneOf(value)}`}>{word(value)}</span>
)

/** A moment of the wire, in Pakistan's time; nothing for none. */
export const When = ({ at, kind }: { at: string | null; kind?: 'date' }) =>
  at && <time dateTime={at}>{text.when(at, kind)}</time>

/** An address that others wrote: a link if it is one of the web, else plain text. */
export function Outside({ href }: { href: string }) {
  if (!/^https?:\/\//i.test(href)) return <Theirs>{href}</Theirs>
  return (
    <a href={href} target="_blank" rel="noopener noreferrer nofollow" class="theirs" dir="ltr">
      {href}
    </a>
  )
}

const money = (amount: string) => (
  <bdi dir="ltr" class="money">
    {text.money(amount)}
  </bdi>
)

const SHOWN: Partial<Record<Kind, (value: never) => ComponentChildren>> = {
  money,
  percent: text.percent,
  count: text.count,
  time: (at: string) => <When at={at} />,
  date: (at: string) => <When at={at} kind="date" />,
  word: (value: string) => <Status value={value} />,
  said: (detail: string) => <Said detail={detail} />,
  url: (href: string) => <Outside href={href} />,
  checks: (values: string[]) => values.join(', '),
}

/** A value as its field of the wire is shown; of offers, accounts and stores their name; `null` for none. */
export function shown(of: object, name: string): ComponentChildren {
  const value = (of as Record<string, never>)[name]
  if (value === null || value === undefined || value === '') return null
  const { title, display_name, shop_domain } = value as Record<string, string>
  const show = SHOWN[fieldOf(name).type]
  return show ? show(value) : <Theirs>{title ?? display_name ?? shop_domain ?? value}</Theirs>
}

interface FactsProps {
  /** A resource whose fields are named in `items`. */
  of?: object
  items: readonly (string | [name: string, value: ComponentChildren])[]
}

/** Names with values beside them; those without a value are left out. */
export function Facts({ of = {}, items }: FactsProps) {
  const pairs = items.map((item) =>
    typeof item === 'string' ? ([fieldOf(item).label, shown(of, item)] as const) : item,
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
  const refused = () => {}
  const copy = () => navigator.clipboard?.writeText(text).then(() => setCopied(true), refused)
  const select = ({ currentTarget }: { currentTarget: HTMLInputElement }) => currentTarget.select()
  return (
    <div class="copy">
      <input readOnly dir="ltr" aria-label={label} value={text} onFocus={select} />
      <button type="button" onClick={() => void copy()}>
        {isCopied ? t('Copied') : t('Copy')}
      </button>
    </div>
  )
}

/** How rows show what is not a field of the wire, by column. */
export type Cells<Row> = Record<string, (row: Row) => ComponentChildren>

interface TableProps<Row> {
  /** What the rows are, for screen readers. */
  label: string
  rows: readonly Row[]
  /** By name on the wire. */
  columns: readonly string[]
  cells?: Cells<Row> | undefined
}

const ENDS: readonly Kind[] = ['money', 'percent', 'count']

/** A table; on narrow screens, each row is a card. */
export function Table<Row extends object>(props: TableProps<Row>) {
  const { label, rows, cells = {} } = props
  const columns = props.columns.map((name) => {
    const { label, type } = fieldOf(name)
    return { name, label, end: ENDS.includes(type) ? 'end' : '' }
  })
  const render = (row: Row & { id?: string }, index: number) => (
    <Fragment key={row.id ?? index}>
      <tr>
        {columns.map(({ name, label, end }) => (
          <td key={name} data-head={label} class={end}>
            {cells[name]?.(row) ?? shown(row, name)}
          </td>
        ))}
      </tr>
    </Fragment>
  )
  // Lists are long: a row is rendered again only when it is another object. Cells may show nothing but their row.
  const rendered = useMemo(() => new WeakMap<Row, ComponentChild>(), [language.use()])
  for (const [index, row] of rows.entries()) if (!rendered.has(row)) rendered.set(row, render(row, index))
  return (
    <table class="table" aria-label={label}>
      <thead>
        <tr>
          {columns.map(({ name, label, end }) => (
            <th key={name} scope="col" class={end}>
              {label}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>{rows.map((row) => rendered.get(row))}</tbody>
    </table>
  )
}
