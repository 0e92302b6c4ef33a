/** Domains that deliver to one mailbox whatever dots the name before the @ has, and whichever of them is written. */
const DOTS_DO_NOT_COUNT = ['gmail.com', 'googlemail.com']

/**
 * The mailbox that an address delivers to, as far as addresses tell: what follows a plus sign is a label of the owner's, and at
 * Gmail dots do not count. Two accounts with one mailbox belong to one person. `email` is in small letters, as accounts keep it.
 */
export function mailboxOf(email: string): string {
  const at = email.lastIndexOf('@')
  const domain = email.slice(at + 1)
  const name = withoutLabel(email.slice(0, at))
  return DOTS_DO_NOT_COUNT.includes(domain) ? `${name.replaceAll('.', '')}@gmail.com` : `${name}@${domain}`
}

/** A name that begins with a plus sign is all label: it stays as it is. */
function withoutLabel(name: string): string {
  const plus = name.indexOf('+')
  return plus > 0 ? name.slice(0, plus) : name
}
