import type { ComponentChildren } from 'preact'
import { useId } from 'preact/hooks'
import { problemIn } from '../../index.ts'
import { messageOf, useMutation } from '../client.ts'
import { navigate, useRoute, withQuery } from '../router.tsx'
import { t } from '../text.ts'

export interface Field<Name extends string = string> {
  /** Of the input that the field fills; the service's complaints about it stand beside the field. */
  name: Name
  label: string
  type?:
    | 'text'
    | 'email'
    | 'password'
    | 'number'
    | 'url'
    | 'date'
    | 'search'
    | 'textarea'
    | 'select'
    | 'checkbox'
  hint?: string
  /** Left out of the input when empty. */
  optional?: boolean
  value?: string | number | boolean | null
  /** Of a `select`. */
  options?: readonly (readonly [value: string, label: string])[]
  autocomplete?: string
  placeholder?: string
}

interface FormProps<Input> {
  fields: Field<keyof Input & string>[]
  /** On the button. */
  submit: string
  /** Sends the input; what it throws is shown. */
  onSubmit: (input: Input) => Promise<unknown>
  /** Below the fields. */
  children?: ComponentChildren
  /** For what cannot be undone. */
  danger?: boolean
}

/** A form that fills the input of a call. */
export function Form<Input extends object>({ fields, submit, onSubmit, children, danger }: FormProps<Input>) {
  const { run, busy, error } = useMutation(onSubmit)
  const issues = problemIn(error)?.issues ?? []
  const complaintOf = (name: string) => issues.find(({ path }) => path.split('.')[0] === name)?.message
  const isBeside =
    issues.length > 0 && issues.every(({ path }) => fields.some(({ name }) => path.startsWith(name)))
  return (
    <form
      class="form"
      onSubmit={(event) => {
        event.preventDefault()
        if (!busy) void run(inputOf(event.currentTarget, fields) as Input)
      }}
    >
      {fields.map((field) => (
        <FieldRow key={field.name} field={field} complaint={complaintOf(field.name)} />
      ))}
      {children}
      {error !== undefined && !isBeside && (
        <p class="notice bad" role="alert">
          <bdi>{messageOf(error)}</bdi>
        </p>
      )}
      <button type="submit" class={danger ? 'danger' : 'main'} aria-disabled={busy}>
        {busy ? t('Please wait…') : submit}
      </button>
    </form>
  )
}

function FieldRow({ field, complaint }: { field: Field; complaint?: string | undefined }) {
  const { name, label, hint, type = 'text', optional } = field
  const id = useId()
  const about = complaint || hint ? `${id}-about` : undefined
  const common = { id, name, 'aria-describedby': about, 'aria-invalid': complaint ? true : undefined }
  const control = <Control field={field} common={{ ...common, required: !optional && type !== 'checkbox' }} />
  return (
    <div class={`field ${type}`}>
      <label for={id}>
        {label}
        {optional && type !== 'checkbox' && <small> {t('optional')}</small>}
      </label>
      {control}
      {about && (
        <p id={about} class={complaint ? 'complaint' : 'quiet'}>
          {complaint ?? hint}
        </p>
      )}
    </div>
  )
}

function Control({ field, common }: { field: Field; common: object }) {
  const { type = 'text', value, options = [], autocomplete, placeholder } = field
  if (type === 'checkbox') return <input {...common} type="checkbox" defaultChecked={value === true} />
  if (type === 'textarea')
    return <textarea {...common} rows={4} dir="auto" defaultValue={String(value ?? '')} />
  if (type === 'select') {
    return (
      <select {...common} defaultValue={String(value ?? '')}>
        {options.map(([word, label]) => (
          <option key={word} value={word} selected={word === String(value ?? '')}>
            {label}
          </option>
        ))}
      </select>
    )
  }
  return (
    <input
      {...common}
      // Preact's types know which roles each type may have, so they take one at a time.
      type={type as 'text'}
      step={type === 'number' ? 'any' : undefined}
      dir={type === 'text' || type === 'search' ? 'auto' : 'ltr'}
      autocomplete={autocomplete ?? 'off'}
      placeholder={placeholder}
      defaultValue={String(value ?? '')}
    />
  )
}

function inputOf(form: HTMLFormElement, fields: readonly Field[]): Record<string, unknown> {
  const data = new FormData(form)
  return Object.fromEntries(
    fields.flatMap(({ name, type, optional }): [string, unknown][] => {
      const text = String(data.get(name) ?? '')
      if (type === 'checkbox') return [[name, text !== '']]
      if (optional && text.trim() === '') return []
      return [[name, type === 'number' ? Number(text) : text]]
    }),
  )
}

/** Fields over a list. What is chosen stands in the address, so that "back" and links work; each field is a query parameter. */
export function Filters({ fields }: { fields: Field[] }) {
  const { query } = useRoute()
  return (
    <form
      class="filters"
      onSubmit={(event) => event.preventDefault()}
      onChange={({ target }) => {
        const { name, value } = target as HTMLInputElement
        navigate(withQuery({ [name]: value }), { replace: true })
      }}
    >
      {fields.map((field) => (
        <FieldRow
          // A new element when the address changes by "back".
          key={`${field.name} ${query.get(field.name) ?? ''}`}
          field={{ ...field, optional: true, value: query.get(field.name) ?? '' }}
        />
      ))}
    </form>
  )
}
