import type { ComponentChildren } from 'preact'
import { useEffect, useId, useRef, useState } from 'preact/hooks'
import { type Change, problemOf, useChange } from '../client.ts'
import { navigate, route } from '../state.ts'
import { fieldOf, type Kind, t, word } from '../text.ts'
import { Failed, Said } from './page.tsx'

export interface Field extends ReturnType<typeof fieldOf> {
  /** Of the input that the field fills; the service's complaints about it stand beside the field. */
  name: string
  /** Left out of the input when empty. */
  optional: boolean
  value?: unknown
}

/** A field of the wire; `?` after its name makes it optional. */
export function field(given: string, more: Partial<Field> = {}): Field {
  const name = given.replace('?', '')
  const whole = { ...fieldOf(name), name, optional: name !== given, ...more }
  return whole.options && whole.type !== 'checks' ? { ...whole, type: 'select' } : whole
}

export interface FormProps<Result = unknown> extends Change<Result> {
  /** Each, or its name on the wire; without any, there is only the button. */
  fields?: readonly (Field | string)[] | undefined
  /** What is changed: an optional field that is emptied becomes null. */
  values?: object
  /** On the button. */
  label: string
  /** Below the fields. */
  children?: ComponentChildren
  /** For what cannot be undone. */
  danger?: boolean
}

/** A form that fills the input of a call. */
export function Form<Result>(props: FormProps<Result>) {
  const { label, children, danger, values } = props
  const fields = (props.fields ?? []).map((given) => {
    const whole = typeof given === 'string' ? field(given) : given
    return values ? { ...whole, value: values[whole.name as keyof typeof values] } : whole
  })
  const { run, busy, error } = useChange(props)
  const { issues = [] } = problemOf(error)
  const complaintOf = (name: string) => issues.find(({ path }) => path.split('.').includes(name))?.message
  const isBeside = ({ path }: { path: string }) => fields.some(({ name }) => path.split('.').includes(name))
  return (
    <form
      class="form"
      onSubmit={(event) => {
        event.preventDefault()
        void run(inputOf(new FormData(event.currentTarget), fields, values && null))
      }}
    >
      {fields.map((field) => (
        <FieldRow key={field.name} field={field} complaint={complaintOf(field.name)} />
      ))}
      {children}
      {!(issues.length > 0 && issues.every(isBeside)) && <Failed error={error} />}
      <button type="submit" class={danger ? 'danger' : 'main'} aria-disabled={busy}>
        {busy ? t('Please wait…') : label}
      </button>
    </form>
  )
}

function FieldRow({ field, complaint }: { field: Field; complaint?: string | undefined }) {
  const { name, label, hint, type } = field
  const id = useId()
  const about = complaint || hint ? `${id}-about` : undefined
  const common = { id, name, 'aria-describedby': about, 'aria-invalid': complaint ? true : undefined }
  const optional = field.optional || type === 'checkbox'
  return (
    <div class={`field ${type}`}>
      <label for={id}>
        {label}
        {field.optional && type !== 'checkbox' && <small> {t('optional')}</small>}
      </label>
      <Control field={field} common={{ ...common, required: !optional }} />
      {about && (
        <p id={about} class={complaint ? 'complaint' : 'quiet'}>
          {complaint ? <Said detail={complaint} code="validation_failed" /> : hint}
        </p>
      )}
    </div>
  )
}

const isNumber = (type: Kind) => type === 'number' || type === 'percent' || type === 'count'

function Control({ field, common }: { field: Field; common: { id: string; required: boolean } }) {
  const { name, label, type, value, options = [], autocomplete = 'off' } = field
  const chosen = Array.isArray(value) ? value : [value]
  if (type === 'checkbox') return <input {...common} type="checkbox" defaultChecked={value === true} />
  if (type === 'textarea' || type === 'lines')
    return <textarea {...common} rows={4} dir="auto" defaultValue={chosen.join('\n')} />
  if (type === 'select')
    return (
      <select {...common}>
        {options.map((option) => (
          <option key={option} value={option} selected={chosen.includes(option)}>
            {word(option)}
          </option>
        ))}
      </select>
    )
  if (type === 'checks')
    return (
      <fieldset id={common.id} class="checks" aria-label={label}>
        {options.map((option) => (
          <label key={option}>
            <input type="checkbox" name={name} value={option} defaultChecked={chosen.includes(option)} />{' '}
            {option}
          </label>
        ))}
      </fieldset>
    )
  return (
    <input
      {...common}
      // Preact's types know which roles each type may have, so they take one at a time.
      type={(isNumber(type) ? 'number' : type === 'money' ? 'text' : type) as 'text'}
      step={isNumber(type) ? 'any' : undefined}
      dir={type === 'text' || type === 'search' ? 'auto' : 'ltr'}
      autocomplete={autocomplete}
      defaultValue={String(value ?? '')}
    />
  )
}

const PAKISTAN = '+05:00'

/** What was filled in, as calls take it; `empty` stands for optional fields that are empty. */
export function inputOf(data: FormData | URLSearchParams, fields: readonly Field[], empty?: null) {
  const input: Record<string, unknown> = {}
  for (const { name, type, optional } of fields) {
    const text = String(data.get(name) ?? '').trim()
    if (type === 'checks') input[name] = data.getAll(name)
    else if (type === 'checkbox') input[name] = text !== ''
    else if (optional && text === '') input[name] = empty
    else if (type === 'lines') input[name] = text.split(/[\s,]+/)
    else if (type === 'date')
      input[name] = `${text}T${name === 'to' ? '23:59:59.999' : '00:00:00'}${PAKISTAN}`
    else input[name] = isNumber(type) ? Number(text) : data.get(name)
  }
  return input
}

/** Fields over a list. What is chosen stands in the address, so that "back" and links work; each field is a query parameter. */
export function Filters({ fields }: { fields: Field[] }) {
  const { path, query } = route.use()
  const choose = ({ target }: Event) => {
    const { name, value } = target as HTMLInputElement
    query.delete(name)
    if (value) query.set(name, value)
    navigate(`${path}?${query}`, { replace: true })
  }
  return (
    <form class="filters" onSubmit={(event) => event.preventDefault()} onChange={choose}>
      {fields.map((field) => {
        const value = query.get(field.name) ?? ''
        // A new element when the address changes by "back".
        return <FieldRow key={`${field.name} ${value}`} field={{ ...field, optional: true, value }} />
      })}
    </form>
  )
}

export interface AskProps extends Partial<FormProps> {
  label: string
  /** What follows from it. */
  text?: ComponentChildren
  class?: string
}

/** A button that makes a change: after a question in a dialog if it has `text`, `fields` or `children`, else at once. */
export function Ask({ label, text, class: name, ...form }: AskProps) {
  const [isOpen, setOpen] = useState(false)
  const { call = async () => {} } = form
  const { run, busy, error } = useChange({ ...form, call })
  const press = () => (text || form.fields || form.children ? setOpen(true) : void run({}))
  const done = async (answer: unknown) => {
    await form.done?.(answer)
    setOpen(false)
  }
  return (
    <>
      <button type="button" class={form.danger ? 'danger' : name} aria-disabled={busy} onClick={press}>
        {label}
      </button>
      <Failed error={error} />
      {isOpen && (
        <Dialog title={label} onClose={() => setOpen(false)}>
          {text && <p>{text}</p>}
          {form.call ? <Form label={label} {...form} call={call} done={done} /> : form.children}
        </Dialog>
      )}
    </>
  )
}

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
      <header class="head">
        <h2 id={id}>{title}</h2>
        <button type="button" class="plain" aria-label={t('Close')} onClick={onClose}>
          ✕
        </button>
      </header>
      {children}
    </dialog>
  )
}
