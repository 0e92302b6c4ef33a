import type { ComponentChildren } from 'preact'
import { useEffect, useId, useRef } from 'preact/hooks'
import { t } from '../text.ts'

interface DialogProps {
  title: string
  onClose: () => void
  children: ComponentChildren
}

/** Asks something over the page, while it is rendered. Escape closes it. */
export function Dialog({ title, onClose, children }: DialogProps) {
  const dialog = useRef<HTMLDialogElement>(null)
  const id = useId()
  useEffect(() => {
    const { current } = dialog
    current?.showModal()
    // Gives the focus back to what opened it.
    return () => current?.close()
  }, [])
  return (
    <dialog ref={dialog} class="dialog" aria-labelledby={id} onClose={onClose}>
      <header class="card-head">
        <h2 id={id}>{title}</h2>
        <button type="button" class="plain" aria-label={t('Close')} onClick={onClose} children="✕" />
      </header>
      {children}
    </dialog>
  )
}
