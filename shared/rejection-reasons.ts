/** The checks of a sale in their order. The first that fails is the rejection reason. */
export const SALE_REJECTION_REASONS = [
  'test_order',
  'not_paid',
  'currency_not_pkr',
  'no_tracking_reference',
  'coupon_not_in_force',
  'unknown_tracking_reference',
  'other_merchants_link',
  'untracked_click',
  'click_after_order',
  'outside_attribution_window',
  'creator_suspended',
  'merchant_suspended',
  'self_purchase',
  'product_unknown',
  'product_not_in_offer',
  'nothing_payable',
] as const

export type RejectionReason = (typeof SALE_REJECTION_REASONS)[number]
