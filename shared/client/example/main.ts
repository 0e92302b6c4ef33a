import {
  createClient,
  displayMoney,
  isRefusal,
  type Outputs,
  parseMoney,
  problemIn,
} from 'affiliate-marketplace-client'

type Sale = Outputs['sales']['list']['items'][number]

let token: string | null = null
const client = createClient({
  url: import.meta.env.VITE_SERVICE_URL ?? 'http://127.0.0.1:3000',
  token: () => token,
})

const form = element<HTMLFormElement>('log-in')
form.addEventListener('submit', (event) => {
  event.preventDefault()
  logIn(new FormData(form)).catch(show)
})
showOffers().catch(show)

async function showOffers(): Promise<void> {
  const { items } = await client.offers.list.query({ sort: 'commission_desc' })
  for (const { title, merchant, commission_rate } of items)
    element('offers').append(line(`${title} from ${merchant.display_name}: ${commission_rate} %`))
}

async function logIn(fields: FormData): Promise<void> {
  const email = String(fields.get('email'))
  const session = await client.auth.login.mutate({ email, password: String(fields.get('password')) })
  token = session.token
  form.hidden = true
  element('message').textContent = ''
  client.live.changes.subscribe(
    {},
    {
      onData({ data }) {
        if (data.kind === 'start') showRecentSales().catch(show)
        if (data.kind === 'sale') showSale(data.sale)
      },
      onError: show,
    },
  )
}

async function showRecentSales(): Promise<void> {
  const { items } = await client.sales.list.query({ limit: 5 })
  for (const sale of items.reverse()) showSale(sale)
}

function showSale({ id, order_name, order_id, acceptance_status, commission }: Sale): void {
  const amount = displayMoney(parseMoney(commission) ?? 0)
  const shown = line(`Order ${order_name ?? order_id}: ${acceptance_status}, commission ${amount}`)
  shown.id = id
  document.getElementById(id)?.remove()
  element('sales').prepend(shown)
}

function show(error: unknown): void {
  const text = isRefusal(error, 'invalid_credentials') ? 'Wrong email or password.' : problemIn(error)?.detail
  element('message').textContent = text ?? 'The service does not answer. Try again later.'
}

function line(text: string): HTMLElement {
  const item = document.createElement('li')
  item.textContent = text
  return item
}

function element<Kind extends HTMLElement>(id: string): Kind {
  return document.getElementById(id) as Kind
}
