/** The groups of operations, in the order of the marketplace's story: the order of the API reference. */
export const TAGS = [
  {
    name: 'auth',
    description:
      'Register, log in, change the password; sessions and the second factor. Registering returns the first token.',
  },
  {
    name: 'users',
    description: 'The account of the caller: name, balance, payout destination, billing account.',
  },
  { name: 'stores', description: "A merchant's connected Shopify stores and the secrets of their webhooks." },
  {
    name: 'offers',
    description: "Merchants' products that creators apply to promote, with their commission.",
  },
  {
    name: 'applications',
    description: "Creators' applications to offers, and merchants' decisions on them.",
  },
  {
    name: 'links',
    description: 'Affiliate links. Approving an application creates one and locks its terms.',
  },
  { name: 'redirect', description: 'Affiliate links as visitors open them.' },
  { name: 'sales', description: 'Orders that stores reported: accepted, or rejected with a reason.' },
  { name: 'billing', description: "Merchants' billing cycles: commission and fees, invoiced once a cycle." },
  { name: 'payouts', description: 'Payments to creators, from what merchants paid.' },
  { name: 'summaries', description: "The caller's figures on one page." },
  { name: 'admin', description: 'Moderation: flags, vetting of offers, suspensions.' },
  { name: 'jobs', description: 'Exports to CSV or NDJSON files.' },
  {
    name: 'webhooks',
    description: "The caller's own endpoints, which events are sent to, and the log of their deliveries.",
  },
  { name: 'incoming', description: 'Events from stores and the payment processor, verified by signature.' },
  { name: 'operation', description: 'For operators of the service: health, readiness, metrics.' },
]
