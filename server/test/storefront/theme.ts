export interface StoreSettings {
  scriptTag: string
  buyNow: boolean
  /** A form of an app for cash on delivery, which opens in a window of the page. */
  codForm: boolean
  hasConsentApi: boolean
  /** What the visitor's consent, or the law where they are, allows when a page is loaded. */
  marketingAllowed: boolean
  /** What a firewall or an app of the store makes of `/cart/update.js`. */
  cartUpdates: 'accepted' | 'refused' | 'unanswered'
  /** False: the browser takes no cookie, so each request has a cart of its own. */
  setsCookies: boolean
  /** Whether orders tell the session's first page. */
  tellsLandingSite: boolean
}

/** What Shopify puts into the head of every page, as far as scripts may use it: the consent API and the standard actions. */
function platformScript({ marketingAllowed, hasConsentApi }: StoreSettings): string {
  return `
  let allowed = ${marketingAllowed}
  window.Shopify = {
    ${hasConsentApi ? '' : '/*'}
    loadFeatures(features, done) {
      if (!features.some(({ name }) => name === 'consent-tracking-api')) return done(new Error('unknown feature'))
      setTimeout(() => {
        Shopify.customerPrivacy = {
          marketingAllowed: () => allowed,
          setTrackingConsent({ marketing }, answered) {
            allowed = marketing
            fetch('/consent', { method: 'POST', body: String(marketing) }).then(() => {
              document.dispatchEvent(new CustomEvent('visitorConsentCollected', { detail: { marketingAllowed: marketing } }))
              answered()
            })
          },
        }
        done()
      }, 30)
    },
    ${hasConsentApi ? '' : '*/'}
    actions: {
      updateCart({ attributes }) {
        const event = new Event('shopify:cart:attributes-update', { bubbles: true })
        event.attributes = attributes
        event.promise = fetch('/api/cart-attributes', { method: 'POST', body: JSON.stringify(attributes) }).then(
          (answer) => answer.text(),
        )
        document.dispatchEvent(event)
        return event.promise
      },
    },
  }`
}

/** A theme as many are: adds by fetch, replaces its product form as a whole when the variant changes. */
const THEME_SCRIPT = `
  const render = () => {
    document.querySelector('#product').innerHTML = document.querySelector('#form').innerHTML
  }
  const post = async (path, body) => {
    const answer = await fetch(path, { method: 'POST', body })
    await answer.text()
    return answer
  }
  const said = (text) => { document.querySelector('output').textContent += text }
  render()
  document.querySelector('#variant').addEventListener('change', render)
  document.addEventListener('submit', async (event) => {
    event.preventDefault()
    await post('/cart/add.js', new FormData(event.target))
    said('added ')
  })
  document.addEventListener('click', async ({ target }) => {
    if (target.closest('.shopify-payment-button')) {
      const bought = await post('/checkouts/buy-now', new FormData(target.closest('form')))
      location = bought.headers.get('location')
    }
    if (target.id === 'cod')
      document.querySelector('#window').innerHTML = document.querySelector('#cod-form').innerHTML
    if (target.id === 'cod-order') {
      const ordered = await post('/apps/cod/order', new FormData(target.closest('form')))
      location = ordered.headers.get('location')
    }
    if (target.id === 'empty') {
      await post('/cart/clear.js')
      said('cleared ')
    }
  })`

const COD_FORM = `<button id="cod" type="button">Order with cash on delivery</button>
<div id="window"></div>
<template id="cod-form">
  <form>
    <input name="phone" value="+923001234567">
    <input type="hidden" name="aff_ref" value="">
    <button id="cod-order" type="button">Complete the order</button>
  </form>
</template>`

export function productPage(settings: StoreSettings): string {
  const buyNow = settings.buyNow
    ? '<div data-shopify="payment-button" class="shopify-payment-button"><button type="button">Buy it now</button></div>'
    : ''
  return `<!doctype html>
<html>
<head>
<meta charset="utf-8">
<title>Lawn kurta</title>
<script>${platformScript(settings)}</script>
${settings.scriptTag}
</head>
<body>
<select id="variant" aria-label="Size"><option>Small<option>Medium</select>
<div id="product"></div>
<template id="form">
  <form method="post" action="/cart/add" class="product-form">
    <input type="hidden" name="id" value="45000000000102">
    <button name="add">Add to cart</button>
    ${buyNow}
  </form>
</template>
${settings.codForm ? COD_FORM : ''}
<button id="empty" type="button">Empty the cart</button>
<a href="/checkout">Check out</a>
<output></output>
<script>${THEME_SCRIPT}</script>
</body>
</html>`
}
