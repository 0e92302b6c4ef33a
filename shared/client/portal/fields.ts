import { key, t } from './text.ts'

/** How a value of the wire is asked for and shown; `lines` and `checks` are lists. */
export type Kind = Texts | 'number' | 'percent' | 'money' | 'count' | 'time' | 'date' | 'word' | 'hidden'
type Texts = 'text' | 'email' | 'password' | 'url' | 'search' | 'textarea' | 'lines' | Choices
type Choices = 'select' | 'checkbox' | 'checks'

/** What the fields of the wire are called. */
const FIELDS: Record<string, [label: string, kind?: Kind, autocomplete?: string]> = {
  email: [key('E-mail'), 'email', 'username'],
  password: [key('Password'), 'password', 'current-password'],
  current_password: [key('Current password'), 'password', 'current-password'],
  new_password: [key('New password'), 'password', 'new-password'],
  code: [key('Code of your authenticator app'), 'text', 'one-time-code'],
  display_name: [key('Name'), 'text', 'name'],
  role: [key('I am a'), 'word'],
  name: [key('Name')],
  scope: [key('May'), 'word'],
  last4: [key('Ends with')],
  last_used_at: [key('Last used'), 'time'],
  expires_in_days: [key('Days until it expires'), 'number'],
  address_prefix: [key('Network')],
  severity: [key('Severity'), 'word'],
  kind: [key('Kind'), 'word'],
  subject_id: [key('About')],
  id: [key("The account's id")],
  note: [key('What was found and done'), 'textarea'],
  status: [key('Status'), 'word'],
  state: [key('Status'), 'word'],
  acceptance_status: [key('Status'), 'word'],
  created_at: [key('Created'), 'time'],
  updated_at: [key('Changed'), 'date'],
  from: [key('From'), 'date'],
  to: [key('Until'), 'date'],
  q: [key('Search'), 'search'],
  reason: [key('Reason'), 'textarea'],
  amount: [key('Amount in rupees')],
  description: [key('Description'), 'textarea'],
  offer: [key('Offer')],
  creator: [key('Creator')],
  merchant: [key('Merchant')],
  store: [key('Store')],
  shop_domain: [key('Name of the shop')],
  webhook_secret: [key('Secret')],
  revoke_former: [key('End the former one now'), 'checkbox'],
  last_event_at: [key('Last delivery'), 'time'],
  unreadable_7d: [key('Unreadable orders of 7 days'), 'count'],
  title: [key('Title')],
  product_url: [key('Product page'), 'url'],
  image_url: [key('Picture'), 'url'],
  category: [key('Category')],
  niche: [key('Niche')],
  commission_rate: [key('Commission'), 'percent'],
  attribution_window_days: [key('Days after a click'), 'number'],
  product_ids: [key('Product ids'), 'lines'],
  vetting: [key('Approval'), 'word'],
  message: [key('Message'), 'textarea'],
  promotion_url: [key('Promotes at'), 'url'],
  decision_reason: [key('Note')],
  coupon_code: [key('Coupon code')],
  order_name: [key('Order')],
  commission: [key('Commission'), 'money'],
  granted_amount: [key('Granted'), 'money'],
  commission_total: [key('Commissions'), 'money'],
  fee_total: [key('Fees'), 'money'],
  credit_total: [key('Credit'), 'money'],
  amount_due: [key('Due'), 'money'],
  resource: [key('Rows'), 'select'],
  format: [key('Format'), 'select'],
  url: [key('Address'), 'url'],
  events: [key('Events'), 'checks'],
  disabled_reason: [key('Disabled because'), 'word'],
  failing_since: [key('Failing since'), 'time'],
  event_type: [key('Event')],
  next_attempt_at: [key('Next attempt'), 'time'],
  response_body: [key('Answer')],
}

/** What people must know to fill in a field. */
const HINTS: Record<string, string> = {
  code: key('Or one of your recovery codes.'),
  display_name: key('The name that others see.'),
  new_password: key('At least 10 characters.'),
  shop_domain: key('It ends in .myshopify.com and stands under Settings → Domains.'),
  webhook_secret: key('It stands below the list of webhooks: “Your webhooks will be signed with …”'),
  product_url: key('Where visitors are sent.'),
  niche: key('A part of the category.'),
  commission_rate: key('In percent.'),
  attribution_window_days: key('How long an order still earns commission.'),
  product_ids: key('Of the store, one a line. Without any, every product earns commission.'),
  coupon_code: key('Orders with it count without a click. Make a discount with this code in Shopify.'),
}

/** What is known of a field of the wire, in the current language. */
export function fieldOf(name: string) {
  const [label = name, kind = 'text', autocomplete] = FIELDS[name] ?? []
  return { label: t(label), kind, autocomplete, hint: t(HINTS[name] ?? '') }
}
