import type { ComponentChildren } from 'preact'
import { useEffect, useRef } from 'preact/hooks'
import { type Answer, problemOf } from '../client.ts'
import { t, translated } from '../text.ts'

export interface PageProps {
  title: string
  /** One sentence below the title. */
  lead?: ComponentChildren
  /** Buttons and links beside the title. */
  actions?: ComponentChildren
  /** One form in the middle. */
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
      <header class="page-head">
        <div>
          <h1 tabIndex={-1} ref={heading}>
            <bdi>{title}</bdi>
          </h1>
          {lead && <p class="quiet">{lead}</p>}
        </div>
        {actions && <div class="actions">{actions}</div>}
      </header>
      {children}
    </div>
  )
}

/** A section of a screen, in a box. */
export function Card({ title, actions, children }: Partial<PageProps>) {
  return (
    <section class="card">
      {title && (
        <header class="card-head">
          <h2>{title}</h2>
          {actions && <div class="actions">{actions}</div>}
        </header>
      )}
      {children}
    </section>
  )
}

/** What a query answered, or a placeholder while it loads, or why it failed. */
export function Answered<Data>({
  of,
  children,
}: {
  of: Answer<Data> & { reload(): unknown }
  children: (data: Data) => ComponentChildren
}) {
  return (
    <>
      <Failed error={of.error} again={of.reload} />
      {of.data !== undefined
        ? children(of.data)
        : !of.error && (
            <div class="skeleton" role="status" aria-label={t('Loading')}>
              <i />
              <i />
              <i />
            </div>
          )}
    </>
  )
}

/** A sentence of the service in the page's language; the English one stays below it. */
export function Said({ detail, code }: { detail: string; code?: string | undefined }) {
  const text = translated(detail, code)
  return (
    <>
      <bdi>{text}</bdi>
      {text !== detail && code && <small lang="en" dir="ltr" children={detail} />}
    </>
  )
}

/** Why a call failed; nothing without an error. */
export function Failed({ error, again }: { error?: unknown; again?: () => unknown }) {
  if (!error) return null
  return (
    <div class="notice bad" role="alert">
      <Said {...problemOf(error)} />
      {again && <button type="button" class="plain" onClick={() => void again()} children={t('Try again')} />}
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
