/** URLs are relative, so the page also works under a path prefix of a proxy. */
export const PAGE = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>API reference: Affiliate offer marketplace</title>
<link rel="icon" href="docs/favicon-32x32.png">
<link rel="stylesheet" href="docs/swagger-ui.css">
<link rel="stylesheet" href="docs/style.css">
</head>
<body>
<div id="reference"></div>
<noscript>This page needs JavaScript. Without it, read <a href="openapi.json">openapi.json</a>.</noscript>
<script src="docs/swagger-ui-bundle.js"></script>
<script type="module" src="docs/start.js"></script>
</body>
</html>
`

/** "Try it out" calls the host that served the page. `validatorUrl: null` keeps Swagger UI from calling its online validator. */
export const START = `const page = new URL('.', location.href)
const response = await fetch(new URL('openapi.json', page))
const spec = await response.json()
spec.servers = [{ url: page.href.replace(/\\/$/, '') }]

// "Try it out" fills in examples; an optional parameter's would narrow the call, so the description shows it instead.
for (const operation of Object.values(spec.paths).flatMap((path) => Object.values(path))) {
  for (const parameter of operation.parameters ?? []) {
    if (parameter.required || parameter.example === undefined) continue
    const values = parameter.schema.enum || 'default' in parameter.schema
    if (!values) parameter.description = (parameter.description ?? '') + \`\\n\\nExample: \\\`\${parameter.example}\\\`\`
    delete parameter.example
  }
}

// The dialog asks for the account's token only: a signature differs with each body.
spec.components.securitySchemes = { bearer: spec.components.securitySchemes.bearer }

/** Who may call, as the requirements of an operation say. */
function accessOf(requirements) {
  const schemes = requirements.flatMap((requirement) => Object.keys(requirement))
  if (schemes.length === 0) return { state: 'open', text: 'public' }
  if (schemes.some((scheme) => scheme.endsWith('Signature'))) return { state: 'closed', text: 'signature' }
  const optional = requirements.some((requirement) => Object.keys(requirement).length === 0)
  return optional ? { state: 'open', text: 'token optional' } : { state: 'closed', text: 'token' }
}

// Swagger UI's own locks show whether a token was entered, and an open one looks like a public operation.
const access = () => ({
  wrapComponents: {
    authorizeOperationBtn: () => () => null,
    OperationSummaryPath: (Original, { React }) => (props) => {
      const requirements = props.operationProps.get('security')?.toJS() ?? []
      const { state, text } = accessOf(requirements)
      return React.createElement(
        React.Fragment,
        null,
        React.createElement(Original, props),
        React.createElement('span', { className: 'access access-' + state }, text),
      )
    },
  },
})

const dark = matchMedia('(prefers-color-scheme: dark)')
const showScheme = () => document.documentElement.classList.toggle('dark-mode', dark.matches)
dark.addEventListener('change', showScheme)
showScheme()

SwaggerUIBundle({
  spec,
  domNode: document.getElementById('reference'),
  plugins: [access],
  deepLinking: true,
  docExpansion: 'list',
  filter: true,
  displayRequestDuration: true,
  defaultModelsExpandDepth: 0,
  validatorUrl: null,
})
`

const lock = (shackle: string) =>
  `url("data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16'%3E%3Cpath d='M3 7h10v8H3z'/%3E%3Cpath d='${shackle}' fill='none' stroke='%23000' stroke-width='1.8'/%3E%3C/svg%3E")`

/**
 * Over Swagger UI's own stylesheet, whose selectors these outweigh: narrow screens, contrast, and who may call.
 */
export const STYLE = `body { margin: 0; }
html.dark-mode body { background: #1c2022; }

/* The introduction. */
.swagger-ui .info { margin: 32px 0; }
.swagger-ui .info__license { display: none; }
.swagger-ui .info .renderedMarkdown :is(p, li) { max-width: 50em; margin: 1em 0; line-height: 1.55; }
.swagger-ui .info .renderedMarkdown h2 { margin: 1.6em 0 0.6em; }
.swagger-ui .info .renderedMarkdown pre { margin: 1em 0; padding: 12px; overflow-x: auto; border-radius: 4px; background: #f3f4f6; }
.swagger-ui .info .renderedMarkdown pre code { padding: 0; background: none; white-space: pre; line-height: 1.5; }
.swagger-ui .info .renderedMarkdown table { width: auto; }
.swagger-ui .info .renderedMarkdown :is(td, th) { min-width: 0; padding: 6px 20px 6px 0; line-height: 1.45; vertical-align: top; }
.swagger-ui .info .renderedMarkdown tbody tr td:first-of-type { min-width: 0; max-width: none; width: auto; padding: 6px 20px 6px 0; white-space: nowrap; }
html.dark-mode .swagger-ui .info .renderedMarkdown pre { background: #2a2e30; }

/* Contrast: at least 4.5 to 1. */
html:not(.dark-mode) .swagger-ui .renderedMarkdown code { color: #24304a; font-weight: 500; }
html:not(.dark-mode) .swagger-ui .renderedMarkdown a { color: #0b5cad; }
html:not(.dark-mode) .swagger-ui .opblock-get .opblock-summary-method { background: #1664b0; }
html:not(.dark-mode) .swagger-ui .opblock-post .opblock-summary-method { background: #14733f; }
html:not(.dark-mode) .swagger-ui .opblock-patch .opblock-summary-method { background: #0b6e69; }
html:not(.dark-mode) .swagger-ui .opblock-delete .opblock-summary-method { background: #b3261e; }
html:not(.dark-mode) .swagger-ui .btn.authorize { border-color: #14733f; color: #14733f; }
html:not(.dark-mode) .swagger-ui .btn.authorize svg { color: #14733f; fill: #14733f; }
html:not(.dark-mode) .swagger-ui .btn.execute { border-color: #1664b0; background: #1664b0; }
html:not(.dark-mode) .swagger-ui .json-schema-2020-12-expand-deep-button { color: #5c6370; }
html:not(.dark-mode) .swagger-ui .json-schema-2020-12__constraint--string { background: #8a5a00; }
html:not(.dark-mode) .swagger-ui .info .title small { background: #565c68; }
html:not(.dark-mode) .swagger-ui .info .title small.version-stamp { background: #3f6b00; }
.swagger-ui .microlight span[style*="rgb(211, 99, 99)"] { color: #ff9a9a !important; }
html:not(.dark-mode) .swagger-ui :is(.parameter__in, .parameter__type) { color: #565c68; }
.swagger-ui :is(button, a, input, select, textarea):focus-visible { outline: 2px solid #1664b0; outline-offset: 2px; }
html.dark-mode .swagger-ui :is(button, a, input, select, textarea):focus-visible { outline-color: #51a8ff; }

/* The document has no links between responses. */
.swagger-ui .response-col_links { display: none; }

/* Who may call. */
.access { display: inline-flex; align-items: center; gap: 4px; padding: 1px 8px; border-radius: 10px;
  background: #fff; color: #3b4151; font: 12px/18px sans-serif; white-space: nowrap; }
.access::before { content: ""; width: 11px; height: 11px; background: currentColor; mask: ${lock('M5 7V4.5a3 3 0 0 1 6 0V7')} center / contain no-repeat; }
.access-open { color: #1c6b3f; }
.access-open::before { mask-image: ${lock('M5 7V4a3 3 0 0 1 5.8-1')}; }
html.dark-mode .access { background: #1c2022; color: #e4e6e6; }
html.dark-mode .access-open { color: #7fd6a4; }

@media (max-width: 640px) {
  .swagger-ui .wrapper { padding: 0 12px; }
  .swagger-ui .info .title { font-size: 28px; }
  .swagger-ui .info .renderedMarkdown thead { display: none; }
  .swagger-ui .info .renderedMarkdown :is(table, tbody, tr) { display: block; }
  .swagger-ui .info .renderedMarkdown tr { padding: 8px 0; border-bottom: 1px solid #d5d8dd; }
  .swagger-ui .info .renderedMarkdown tbody tr td, .swagger-ui .info .renderedMarkdown tbody tr td:first-of-type { display: inline; padding: 0 6px 0 0; }
  .swagger-ui .info .renderedMarkdown tbody tr td:nth-of-type(n + 3) { display: block; padding: 2px 0 0; }
  .swagger-ui .opblock .opblock-summary { align-items: flex-start; padding: 8px 6px; }
  .swagger-ui .opblock .opblock-summary-control { align-items: flex-start; gap: 8px; min-width: 0; }
  .swagger-ui .opblock .opblock-summary-method { min-width: 60px; padding: 4px 0; font-size: 12px; }
  .swagger-ui .opblock-summary-path-description-wrapper { flex-flow: row wrap; flex: 1; gap: 4px 8px; min-width: 0; padding: 0; }
  .swagger-ui .opblock .opblock-summary-path { max-width: 100%; padding: 0; font-size: 14px; }
  .swagger-ui .opblock .opblock-summary-description { flex-basis: 100%; }
  .swagger-ui .opblock-tag { flex-wrap: wrap; font-size: 20px; }
  .swagger-ui .opblock-body :is(table.parameters, table.parameters tbody, table.parameters tr, table.parameters td) { display: block; width: auto; }
  .swagger-ui .opblock-body table.parameters thead { display: none; }
  .swagger-ui .opblock-body table.parameters td { max-width: 100%; padding: 4px 0; }
  .swagger-ui .opblock-body :is(.table-container, .responses-inner) { padding: 10px; }
  .swagger-ui .opblock-body :is(input[type=text], textarea, select) { max-width: 100%; min-width: 0; }
  .swagger-ui .responses-table .response-col_status { width: 40px; min-width: 0; padding-right: 6px; }
  .swagger-ui :is(pre, .highlight-code, .model-box, .json-schema-2020-12) { max-width: 100%; overflow-x: auto; }
  .swagger-ui .scheme-container .schemes { flex-wrap: wrap; gap: 12px; }
}
`
