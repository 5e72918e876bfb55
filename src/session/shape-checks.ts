/** Whether a value from a journal is what is expected. */
type Check = (value: unknown) => boolean
/** What is expected of the fields of an object. */
export type Fields = Readonly<Record<string, Check>>
/** Checks of the fields of `T`; those that nothing depends on are left out. */
export type FieldsOf<T> = { readonly [K in keyof T]?: Check }
/** A shape for each event of a union. */
export type ShapesOf<E extends { type: string }> = { readonly [T in E['type']]: FieldsOf<Extract<E, { type: T }>> }

export const text: Check = value => typeof value === 'string'
export const number: Check = value => typeof value === 'number'
export const flag: Check = value => typeof value === 'boolean'
export const moment: Check = value => typeof value === 'string' && !Number.isNaN(Date.parse(value))
export const nullOr =
  (check: Check): Check =>
  value =>
    value === null || check(value)
export const missingOr =
  (check: Check): Check =>
  value =>
    value === undefined || check(value)
export const listOf =
  (check: Check): Check =>
  value =>
    Array.isArray(value) && value.every(check)
export const oneOf =
  (...values: string[]): Check =>
  value =>
    typeof value === 'string' && values.includes(value)
export const fields =
  (shape: Fields): Check =>
  value =>
    isObject(value) && hasFields(value, shape)
/** An object whose `key` says which of the shapes it has. */
export const variant =
  (key: string, shapes: Readonly<Record<string, Fields>>): Check =>
  value => {
    const kind = isObject(value) ? value[key] : null
    if (!isObject(value) || typeof kind !== 'string' || !Object.hasOwn(shapes, kind)) return false
    return hasFields(value, shapes[kind] ?? {})
  }

/** Whether an object has in each field of the shape what is expected there. */
export function hasFields(value: Readonly<Record<string, unknown>>, shape: Fields): boolean {
  for (const name in shape) if (shape[name]?.(value[name]) === false) return false
  return true
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
