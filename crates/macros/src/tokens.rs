//! Helpers for tokens that need no grammar.

use std::collections::HashSet;

use proc_macro2::{Delimiter, Group, Ident, Span, TokenStream, TokenTree};
use quote::quote_spanned;

/// The associated types of an actor that its block may refer to as `Self::Error`.
const ASSOCIATED: [&str; 3] = ["Args", "Error", "Msg"];

/// Qualifies the actor's associated types. Inside the block they belong to the trait being
/// implemented, but handlers become inherent methods of the type, where `Self::Error` is not
/// defined.
pub(crate) fn qualify_associated_types(tokens: TokenStream, root: &TokenStream) -> TokenStream {
    let mut tokens = tokens.into_iter().peekable();
    let mut done = TokenStream::new();
    while let Some(token) = tokens.next() {
        match token {
            TokenTree::Group(group) => {
                let mut inner = Group::new(
                    group.delimiter(),
                    qualify_associated_types(group.stream(), root),
                );
                inner.set_span(group.span());
                done.extend([TokenTree::Group(inner)]);
            }
            TokenTree::Ident(ident) if ident == "Self" => {
                let rest: Vec<TokenTree> = tokens.clone().take(4).collect();
                if let [
                    TokenTree::Punct(a),
                    TokenTree::Punct(b),
                    TokenTree::Ident(name),
                    after @ ..,
                ] = &*rest
                    && a.as_char() == ':'
                    && b.as_char() == ':'
                    && ASSOCIATED.iter().any(|known| name == known)
                    && !after.first().is_some_and(is_payload)
                {
                    tokens.nth(2);
                    let place = Span::mixed_site().located_at(ident.span());
                    done.extend(quote_spanned!(place=> <#ident as #root::Actor>::#name));
                } else {
                    done.extend([TokenTree::Ident(ident)]);
                }
            }
            other => done.extend([other]),
        }
    }
    done
}

/// Returns `true` for a token that follows the name of an enum variant, but not that of a type.
fn is_payload(token: &TokenTree) -> bool {
    matches!(token, TokenTree::Group(group)
        if matches!(group.delimiter(), Delimiter::Parenthesis | Delimiter::Brace))
}

/// Replaces `Self` by a type, for use outside of an `impl`.
pub(crate) fn replace_self(tokens: TokenStream, this: &TokenStream) -> TokenStream {
    let named = tokens.into_iter().map(|token| match token {
        TokenTree::Group(group) => {
            let mut inner = Group::new(group.delimiter(), replace_self(group.stream(), this));
            inner.set_span(group.span());
            TokenStream::from(TokenTree::Group(inner))
        }
        TokenTree::Ident(ident) if ident == "Self" => this.clone(),
        other => other.into(),
    });
    named.collect()
}

/// Collects all identifiers in some tokens, at any depth.
pub(crate) fn collect_idents(tokens: TokenStream, into: &mut HashSet<Ident>) {
    for token in tokens {
        match token {
            TokenTree::Group(group) => collect_idents(group.stream(), into),
            TokenTree::Ident(ident) => {
                into.insert(ident);
            }
            TokenTree::Punct(_) | TokenTree::Literal(_) => {}
        }
    }
}

/// Returns the same tokens with another span.
pub(crate) fn respan(tokens: &TokenStream, span: Span) -> TokenStream {
    let moved = tokens.clone().into_iter().map(|mut token| {
        token.set_span(span);
        token
    });
    moved.collect()
}

/// Puts braces with this span around tokens: the span of an item is that of its first and last
/// tokens.
pub(crate) fn braced(tokens: TokenStream, span: Span) -> TokenTree {
    let mut group = Group::new(Delimiter::Brace, tokens);
    group.set_span(span);
    group.into()
}
