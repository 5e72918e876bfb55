import { BUILD_SHAPES } from './build-shapes.ts'
import { CLAIM_SHAPES } from './claim-shapes.ts'
import type { SessionEvent } from './events.ts'
import { FILE_SHAPES } from './file-shapes.ts'
import { LIFECYCLE_SHAPES } from './lifecycle-shapes.ts'
import { ROUND_SHAPES } from './round-shapes.ts'
import { hasFields, moment, type ShapesOf } from './shape-checks.ts'

/**
 * Whether an object from a journal has what its type promises, as far as something depends on it: a line that was
 * damaged or written by hand is no event, and must not look like a bug of who reads it. Fields that only some versions
 * write (`withNewerFields`) may be missing. False for a type that this version does not know.
 */
export function isEvent(value: Readonly<Record<string, unknown>>): boolean {
  const { type, at } = value
  if (typeof type !== 'string' || !moment(at)) return false
  return Object.hasOwn(SHAPES, type) && hasFields(value, SHAPES[type as SessionEvent['type']])
}

const SHAPES: ShapesOf<SessionEvent> = {
  ...LIFECYCLE_SHAPES,
  ...ROUND_SHAPES,
  ...FILE_SHAPES,
  ...BUILD_SHAPES,
  ...CLAIM_SHAPES,
}
