import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import { useMutation } from '../client.ts'
import { Dialog } from './dialog.tsx'
import { Form, type FormProps } from './form.tsx'
import { Failed } from './page.tsx'

export interface AskProps extends Partial<FormProps<never>> {
  label: string
  /** What follows from it. */
  text?: ComponentChildren
  class?: string
  /** None if the dialog only shows something. */
  onSubmit?: (input: never) => Promise<unknown>
}

/** A button that does something: after a question in a dialog if it has `text`, `fields` or `children`, else at once. */
export function Ask({ label, text, class: name, onSubmit = async () => {}, ...form }: AskProps) {
  const [isOpen, setOpen] = useState(false)
  const { run, busy, error } = useMutation(onSubmit)
  const press = () => {
    if (text || form.fields || form.children) setOpen(true)
    else if (!busy) void run({} as never)
  }
  const submit = (input: never) => onSubmit(input).then(() => setOpen(false))
  return (
    <>
      <button type="button" class={form.danger ? 'danger' : name} aria-disabled={busy} onClick={press}>
        {label}
      </button>
      <Failed error={error} />
      {isOpen && (
        <Dialog title={label} onClose={() => setOpen(false)}>
          {text && <p>{text}</p>}
          {form.fields || text ? (
            <Form fields={[]} submit={label} {...form} onSubmit={submit} />
          ) : (
            form.children
          )}
        </Dialog>
      )}
    </>
  )
}

/** What can be done with a resource. */
export function Asks({ items }: { items: (AskProps | false)[] }) {
  return <div class="actions">{items.map((ask) => ask && <Ask key={ask.label} {...ask} />)}</div>
}
