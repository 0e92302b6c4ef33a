import { z } from 'zod'
import {
  currency,
  idParam,
  lineOfText,
  moneyText,
  pageOf,
  role,
  wholeNumber,
  wholeText,
  wireTime,
} from './common.ts'

/** Trimmed and in lower case; accounts are distinguished by it. */
export const emailAddress = z
  .string()
  .trim()
  .toLowerCase()
  .max(254)
  .regex(z.regexes.email, 'must be an e-mail address')
  .meta({ description: 'Compared in lower case.', format: 'email', example: 'ayesha@example.pk' })

export const newPassword = wholeText()
  .min(10, 'must have at least 10 characters')
  .max(256, 'must have at most 256 characters')
  .meta({
    description: '10 to 256 characters; common ones are refused.',
    format: 'password',
    example: 'a long passphrase',
  })

/** A password to compare: an old account may have been made under other rules, so only the upper bound holds. */
const givenPassword = wholeText()
  .max(256)
  .meta({ description: 'The password of the account.', format: 'password', example: 'a long passphrase' })

export const displayName = lineOfText(1, 100).meta({
  description: 'The name that others see.',
  example: 'Ayesha Khan',
})

export const registerInput = z.strictObject({
  email: emailAddress,
  password: newPassword,
  role: z.enum(['merchant', 'creator']).describe('Merchants sell, creators promote; it never changes.'),
  display_name: displayName,
})

const secondFactorCode = z
  .string()
  .min(1)
  .max(40)
  .describe('The current code of the authenticator app, or a recovery code.')
  .meta({ example: '492039' })

export const loginInput = z.strictObject({
  email: emailAddress,
  password: givenPassword,
  code: secondFactorCode.optional(),
})

export const stepUpInput = z.strictObject({ password: givenPassword, code: secondFactorCode.optional() })

export const secondFactorInput = z.strictObject({ code: secondFactorCode })

export const totpEnrollment = z
  .object({
    secret: z
      .string()
      .describe('To be typed into an authenticator app, in base32. It is shown only here.')
      .meta({ example: 'JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP' }),
    otpauth_url: z.string().describe('The same as the text of a QR code.').meta({
      example:
        'otpauth://totp/market.example.pk:sana%40reels.example.pk?secret=JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP&issuer=market.example.pk',
    }),
  })
  .meta({ id: 'TotpEnrollment' })

export const recoveryCodes = z
  .object({
    recovery_codes: z
      .array(z.string().meta({ example: 'Q4XN-7TBA-KD2M-WZ5R' }))
      .describe('Ten codes, each for one log-in without the app. They are shown only here.'),
  })
  .meta({ id: 'RecoveryCodes' })

/** The token of a mailed link. */
const linkToken = z.string().max(200).meta({
  description: 'The token in the mailed link.',
  example: 'k3mTq0xRr1Y7b0Q4f9cJ5wZ8vN2hL6sD1aG7eP3uKxM',
})

export const requestPasswordResetInput = z.strictObject({ email: emailAddress })

/** Says nothing about the account. */
export const passwordResetRequested = z.object({
  accepted: z.literal(true).describe('Says nothing about the account.'),
})

export const confirmPasswordResetInput = z.strictObject({ token: linkToken, new_password: newPassword })

export const verifyEmailInput = z.strictObject({ token: linkToken })

export const changePasswordInput = z.strictObject({
  current_password: givenPassword,
  new_password: newPassword,
})

/** Of a procedure that takes nothing. */
export const noInput = z.strictObject({}).prefault({})

/** Checked by bank-accounts.rule.ts, which knows how people paste accounts. */
const pastedIban = z.string().max(120).meta({
  description:
    'A Pakistani IBAN as people paste it: spaces, hyphens, dots, brackets, invisible characters and a label such as "IBAN:" are removed, Urdu and Arabic digits read.',
  example: 'PK36SCBL0000001123456702',
})

const payoutDestinationInput = z
  .strictObject({
    iban: pastedIban,
    account_title: lineOfText(1, 100).meta({ description: 'As the bank has it.', example: 'AYESHA KHAN' }),
  })
  .describe('Where payouts go; creators only.')

const billingAccountInput = z
  .strictObject({
    iban: pastedIban.optional(),
    raast_id: z.string().max(120).optional().meta({
      description:
        'The mobile number of a Raast ID, such as 03001234567, +92 (0)300 1234567 or tel:+923001234567; cleaned as an IBAN is.',
      example: '03001234567',
    }),
  })
  .describe(
    'The account that invoices are paid from, for processors that send payment requests; merchants only. Either an IBAN or a Raast ID.',
  )

export const updateMeInput = z
  .strictObject({
    display_name: displayName.optional(),
    payout_destination: payoutDestinationInput.optional(),
    billing_account: billingAccountInput.optional(),
    current_password: givenPassword
      .optional()
      .describe('Needed to replace a payout destination or a billing account.'),
  })
  .prefault({})

const payoutDestination = z.object({
  iban_last4: z.string().meta({ description: 'The last four characters of the IBAN.', example: '6702' }),
  account_title: z.string().describe('As the bank has it.'),
})

const billingAccount = z.object({
  kind: z.enum(['iban', 'raast_id']).describe('Which of the two was given.'),
  last4: z.string().describe('The last four characters.').meta({ example: '6702' }),
})

const balance = z.object({
  pending: moneyText.describe('Earned in billing cycles that are not charged yet.'),
  released: moneyText.describe('Payable: goes out once it reaches the threshold.'),
  in_transit: moneyText.describe('In payouts that the processor has not confirmed yet.'),
  paid: moneyText,
  payout_threshold: moneyText,
  currency,
})

const account = z.object({
  open_cycle_due: moneyText.describe('What the open billing cycle would charge if it closed now.'),
  unpaid: moneyText.describe('Closed billing cycles that are not paid yet.'),
  credit_available: moneyText.describe('Credit that no closed billing cycle has used.'),
  currency,
})

export const user = z
  .object({
    id: idParam,
    email: z.string().describe('The address to log in with.'),
    role,
    display_name: z.string().describe('The name that others see.'),
    suspended: z.boolean().describe('Whether an admin has suspended the account.'),
    created_at: wireTime,
    email_verified_at: wireTime
      .nullable()
      .describe('When the owner of the address confirmed it; null before.'),
    second_factor: z
      .boolean()
      .optional()
      .describe('Whether a second factor is on; in answers about the own account.'),
    payout_destination: payoutDestination
      .nullable()
      .optional()
      .describe('Creators only: where a payout made now would go.'),
    upcoming_payout_destination: payoutDestination
      .extend({ effective_at: wireTime })
      .nullable()
      .optional()
      .describe('Creators only: a replacement that has not come into effect yet.'),
    balance: balance.optional().describe('Creators only.'),
    account: account.optional().describe('Merchants only.'),
    billing_account: billingAccount
      .nullable()
      .optional()
      .describe(
        'Merchants only: the account that invoices are paid from, where the processor requests payments.',
      ),
  })
  .meta({ id: 'User' })
export type UserWire = z.infer<typeof user>

export const session = z
  .object({
    user: user.describe('Who has logged in.'),
    token: z
      .string()
      .describe(
        'Send it as `Authorization: Bearer <token>`. It is shown only here. Empty over tRPC with `X-Session: cookie`, which sets a cookie instead.',
      ),
    expires_at: wireTime,
    second_factor_setup_required: z
      .boolean()
      .optional()
      .describe(
        'Present and true if the token can only set up a second factor (`POST /auth/totp`), which admins need in production.',
      ),
  })
  .meta({ id: 'Session' })

export const openSession = z
  .object({
    id: idParam,
    created_at: wireTime.describe('When it was opened by a log-in.'),
    expires_at: wireTime,
    last_used_at: wireTime
      .nullable()
      .describe('Accurate to a minute; null for an old session that is unused.'),
    address_prefix: z
      .string()
      .nullable()
      .describe('The network that logged in.')
      .meta({ example: '203.0.113.0/24' }),
    agent: z
      .string()
      .nullable()
      .describe('The program that logged in, as it calls itself.')
      .meta({ example: 'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0' }),
    current: z.boolean().describe('Whether it is the session of this call.'),
  })
  .meta({ id: 'OpenSession' })

export const sessionList = pageOf(openSession)

/** `read` may call what changes nothing. */
const apiKeyScope = z
  .enum(['read', 'write'])
  .describe('`read`: may call what changes nothing. `write`: may change things too.')
export type ApiKeyScope = z.infer<typeof apiKeyScope>

export const createApiKeyInput = z.strictObject({
  name: lineOfText(1, 100).describe('What the key is for.').meta({ example: 'Weekly report' }),
  scope: apiKeyScope,
  expires_in_days: wholeNumber(1, 365).optional().describe('Without it the key does not expire.'),
})

export const apiKey = z
  .object({
    id: idParam,
    name: z.string().meta({ description: 'What the key is for.', example: 'Weekly report' }),
    scope: apiKeyScope,
    last4: z.string().describe('The last four characters of the key.').meta({ example: 'w8Zk' }),
    created_at: wireTime,
    last_used_at: wireTime.nullable().describe('Accurate to a minute; null before the first use.'),
    expires_at: wireTime.nullable().describe('Null: it does not expire.'),
  })
  .meta({ id: 'ApiKey' })

export const createdApiKey = apiKey
  .extend({
    key: z.string().describe('Send it as `Authorization: Bearer <key>`. It is shown only here.'),
  })
  .meta({ id: 'CreatedApiKey' })

export const apiKeyList = pageOf(apiKey)
