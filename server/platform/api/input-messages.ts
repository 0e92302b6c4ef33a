import { z } from 'zod'

type Issue = Parameters<z.core.$ZodErrorMap>[0]

const TYPE_NAMES: Readonly<Record<string, string>> = {
  string: 'text',
  number: 'a number',
  int: 'a whole number',
  boolean: 'true or false',
  array: 'a list',
  object: 'an object',
}

/** The message for an invalid field, to follow its name: `is required`. A schema's own message takes precedence. */
function inputMessage(issue: Issue): string {
  if (issue.input === undefined && (issue.code === 'invalid_type' || issue.code === 'invalid_value')) {
    return 'is required'
  }
  switch (issue.code) {
    case 'invalid_type':
      return `must be ${TYPE_NAMES[issue.expected] ?? issue.expected}`
    case 'invalid_value':
      return oneOf(issue.values)
    case 'too_small':
    case 'too_big':
      return outOfBounds(issue)
    case 'unrecognized_keys':
      return 'is not a known field'
    case 'not_multiple_of':
      return `must be a multiple of ${issue.divisor}`
    default:
      return 'is not valid'
  }
}

function oneOf(values: readonly unknown[]): string {
  const names = values.map(String)
  return names.length === 1 ? `must be ${names[0]}` : `must be one of ${names.join(', ')}`
}

type OutOfBounds = Extract<Issue, { code: 'too_small' | 'too_big' }>

function outOfBounds(issue: OutOfBounds): string {
  const bound = Number(issue.code === 'too_small' ? issue.minimum : issue.maximum)
  const limit = `at ${issue.code === 'too_small' ? 'least' : 'most'} ${bound}`
  if (issue.origin === 'array') return `must have ${limit} ${bound === 1 ? 'entry' : 'entries'}`
  if (issue.origin !== 'string') return `must be ${limit}`
  if (issue.code === 'too_small' && bound === 1) return 'must not be empty'
  return `must have ${limit} ${bound === 1 ? 'character' : 'characters'}`
}

z.config({ localeError: inputMessage })
