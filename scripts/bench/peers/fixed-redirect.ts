/** The least that a redirect can be: the same answer for everybody, and nothing kept. */
import { listen } from './listen.ts'

const LOCATION = 'https://shop.pk/products/lamp?variant=7&aff_ref=01890a5d-ac96-774b-bcce-b302099a8057'

listen((_request, response) => {
  response.writeHead(302, { location: LOCATION, 'content-length': 0 })
  response.end()
})
