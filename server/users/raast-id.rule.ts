export type RaastIdCheck = { ok: true; raastId: string } | { ok: false; message: string }

/** A Pakistani mobile number after its prefix: 3 and nine digits. */
const MOBILE_NUMBER = /^(?:\+92|0092|92|0)?(3\d{9})$/

/**
 * Checks a Raast ID, which is the mobile number that its owner linked to an account, and answers it in national form: 03001234567.
 * Spaces, hyphens and the country code are accepted as people type them. The message completes "raast_id ...".
 */
export function checkRaastId(text: string): RaastIdCheck {
  const [, number] = MOBILE_NUMBER.exec(text.replace(/[\s-]/g, '')) ?? []
  if (number === undefined) {
    return { ok: false, message: 'must be a Pakistani mobile number, such as 03001234567 or +92 300 1234567' }
  }
  return { ok: true, raastId: `0${number}` }
}
