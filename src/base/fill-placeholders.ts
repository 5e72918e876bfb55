/**
 * Puts values in for the `{{name}}` of one of our own texts, in one pass: what looks like a placeholder inside a value
 * stays as it is. Throws if the text has a placeholder that no value is given for.
 */
export function fillPlaceholders(text: string, values: Readonly<Record<string, string>>): string {
  return text.replace(/\{\{([^{}]*)\}\}/g, (placeholder, inner: string) => {
    const name = inner.trim()
    const value = Object.hasOwn(values, name) ? values[name] : undefined
    if (value === undefined) throw new Error(`No value for the placeholder ${placeholder}`)
    return value
  })
}
