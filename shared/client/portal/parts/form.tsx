import type { ComponentChildren } from 'preact'
import { useId } from 'preact/hooks'
import { problemOf, useMutation } from '../client.ts'
import { navigate, useRoute, withQuery } from '../router.tsx'
import { t } from '../text.ts'
import { fieldOf, type Kind, word } from '../words.ts'
import { Failed, Said } from './page.tsx'

export interface Field<Name extends string = string> {
  /** Of the input that the field fills; the service's complaints about it stand beside the field. */
  name: Name
  label: string
  type?: Kind
  hint?: string
  /** Left out of the input when empty. */
  optional?: boolean
  value?: unknown
  /** Of `select` and `checks`. */
  options?: readonly (readonly [value: string, label: string])[]
  autocomplete?: string
  placeholder?: string
}

/** A field of the wire; `?` after its name makes it optional. */
export const field = (name: string, more: Partial<Field> = {}): Field => {
  const { kind, ...known } = fieldOf(name.replace('?', ''))
  return { ...known, name: name.replace('?', ''), type: kind, optional: name.endsWith('?'), ...more }
}

/** Values of the wire to choose from. */
export const optionsOf = (values: readonly string[]): [value: string, label: string][] =>
  values.map((value) => [value, word(value)])

export interface FormProps<Input> {
  /** Each, or its name on the wire. */
  fields: readonly (Field | string)[]
  /** What is changed: an optional field that is emptied becomes null. */
  values?: object
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
export function Form<Input extends object>(props: FormProps<Input>) {
  const { submit, onSubmit, children, danger, values } = props
  const fields = props.fields.map((given) => {
    const whole = typeof given === 'string' ? field(given) : given
    return values ? { ...whole, value: values[whole.name as keyof typeof values] } : whole
  })
  const { run, busy, error } = useMutation(onSubmit)
  const { issues = [] } = problemOf(error)
  const complaintOf = (name: string) => issues.find(({ path }) => path.split('.').includes(name))?.message
  const isBeside =
    issues.length > 0 && issues.every(({ path }) => fields.some(({ name }) => path.split('.').includes(name)))
  return (
    <form
      class="form"
      onSubmit={(event) => {
        event.preventDefault()
        if (!busy) void run(inputOf(new FormData(event.currentTarget), fields, values && null) as Input)
      }}
    >
      {fields.map((field) => (
        <FieldRow key={field.name} field={field} complaint={complaintOf(field.name)} />
      ))}
      {children}
      {!isBeside && <Failed error={error} />}
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
          {complaint ? <Said detail={complaint} code="validation_failed" /> : hint}
        </p>
      )}
    </div>
  )
}

const isNumber = (type?: Kind) => type === 'number' || type === 'percent' || type === 'count'

function Control({ field, common }: { field: Field; common: { id: string; required: boolean } }) {
  const { name, label, type = 'text', value, options = [], autocomplete, placeholder } = field
  const chosen = Array.isArray(value) ? value : [value]
  if (type === 'checkbox') return <input {...common} type="checkbox" defaultChecked={value === true} />
  if (type === 'textarea' || type === 'lines')
    return <textarea {...common} rows={4} dir="auto" defaultValue={chosen.join('\n')} />
  if (type === 'select')
    return (
      <select {...common}>
        {options.map(([word, text]) => (
          <option key={word} value={word} selected={chosen.includes(word)}>
            {text}
          </option>
        ))}
      </select>
    )
  if (type === 'checks')
    return (
      <fieldset id={common.id} class="checks" aria-label={label}>
        {options.map(([word, text]) => (
          <label key={word}>
            <input type="checkbox" name={name} value={word} defaultChecked={chosen.includes(word)} /> {text}
          </label>
        ))}
      </fieldset>
    )
  return (
    <input
      {...common}
      // Preact's types know which roles each type may have, so they take one at a time.
      type={(isNumber(type) ? 'number' : type) as 'text'}
      step={isNumber(type) ? 'any' : undefined}
      dir={type === 'text' || type === 'search' ? 'auto' : 'ltr'}
      autocomplete={autocomplete ?? 'off'}
      placeholder={placeholder}
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
