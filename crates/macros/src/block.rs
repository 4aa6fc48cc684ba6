//! The `impl` block of an actor: items that belong to the trait, and handlers.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use proc_macro2::{Ident, Span, TokenStream, TokenTree};
use quote::ToTokens;
use syn::parse::{Parse, ParseStream};
use syn::{Attribute, Error, Generics, Path, Token, Type, WhereClause};

use crate::handler::{self, FnHead, Handler};

/// Functions that the `Actor` trait calls by itself. Every other function of the block is a
/// handler.
const HOOKS: [&str; 3] = ["pre_start", "signal", "post_stop"];

/// The `impl` of `Actor`, parsed as far as the generated code needs it.
pub(crate) struct ActorImpl {
    pub(crate) attributes: Vec<Attribute>,
    pub(crate) impl_token: Token![impl],
    pub(crate) generics: Generics,
    pub(crate) actor_trait: Path,
    pub(crate) this: Type,
    /// The span of the block's braces.
    pub(crate) braces: Span,
    /// Types, constants and hooks, which are passed through.
    pub(crate) passthrough: TokenStream,
    pub(crate) handlers: Vec<Handler>,
    pub(crate) errors: Vec<Error>,
}

impl Parse for ActorImpl {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let attributes = input.call(Attribute::parse_outer)?;
        let Some(impl_token) = input.parse::<Option<Token![impl]>>()? else {
            return Err(input.error("expected `impl Actor for TYPE`"));
        };
        let mut generics: Generics = input.parse()?;
        let first: Type = input.parse()?;
        if !input.peek(Token![for]) {
            let what = format!(
                "write `impl Actor for {0}`: the handlers belong in one block with `Args`, \
                 `Error` and `pre_start`",
                first.to_token_stream()
            );
            return Err(Error::new_spanned(first, what));
        }
        let actor_trait = match first {
            Type::Path(path) if is_actor_trait(&path.path) => path.path,
            other => {
                let what = "`#[handlers]` can only be used on an `impl` of `Actor`";
                return Err(Error::new_spanned(other, what));
            }
        };
        input.parse::<Token![for]>()?;
        let this: Type = input.parse()?;
        generics.where_clause = input.parse::<Option<WhereClause>>()?;
        let content;
        let braces = syn::braced!(content in input);
        let mut block = Self {
            attributes,
            impl_token,
            generics,
            actor_trait,
            this,
            braces: braces.span.join(),
            passthrough: TokenStream::new(),
            handlers: Vec::new(),
            errors: Vec::new(),
        };
        while !content.is_empty() {
            block.parse_item(&content)?;
        }
        block.find_duplicates();
        if block.handlers.is_empty() && block.errors.is_empty() {
            let what = "no handler in this block: for an actor without messages, write `type Msg \
                        = std::convert::Infallible` and `handle` by hand";
            block.errors.push(Error::new_spanned(&block.this, what));
        }
        Ok(block)
    }
}

fn is_actor_trait(path: &Path) -> bool {
    path.segments
        .last()
        .is_some_and(|last| last.ident == "Actor")
}

impl ActorImpl {
    fn parse_item(&mut self, input: ParseStream<'_>) -> syn::Result<()> {
        let attributes = input.call(Attribute::parse_outer)?;
        let visibility = input.parse()?;
        let is_constant = input.peek(Token![const])
            && !input.peek2(Token![fn])
            && !input.peek2(Token![async])
            && !input.peek2(Token![unsafe]);
        if input.peek(Token![type]) || is_constant {
            return self.keep_until_semicolon(&attributes, input);
        }
        let mut qualifiers = Vec::new();
        while !input.peek(Token![fn]) {
            let is_word = input.peek(Token![async])
                || input.peek(Token![const])
                || input.peek(Token![unsafe])
                || input.peek(Token![extern])
                || input.peek(syn::LitStr);
            if !is_word {
                let what = "expected a type, a constant, a hook or a handler (`async fn`)";
                return Err(input.error(what));
            }
            qualifiers.push(input.parse::<TokenTree>()?);
        }
        let fn_token: Token![fn] = input.parse()?;
        let name: Ident = input.parse()?;
        let head = FnHead {
            attributes,
            visibility,
            qualifiers,
            fn_token,
            name,
        };
        if HOOKS.iter().any(|hook| head.name == hook) {
            return self.keep_hook(head, input);
        }
        if head.name == "handle" {
            let what = "`handle` is generated from the handlers: choose another name for this \
                        handler";
            self.errors.push(Error::new(head.name.span(), what));
            return skip_function(input);
        }
        // A handler with an incomplete signature would make the rest of the block unreadable.
        let ahead = input.fork();
        match handler::parse(head, input, &mut self.errors) {
            Ok(handler) => self.handlers.push(handler),
            Err(error) => {
                self.errors.push(error);
                skip_function(&ahead)?;
                syn::parse::discouraged::Speculative::advance_to(input, &ahead);
            }
        }
        Ok(())
    }

    fn keep_until_semicolon(
        &mut self,
        attributes: &[Attribute],
        input: ParseStream<'_>,
    ) -> syn::Result<()> {
        let is_type = input.peek(Token![type]);
        let mut item = TokenStream::new();
        let mut name = None;
        while !input.peek(Token![;]) {
            let token: TokenTree = input.parse()?;
            if let (None, TokenTree::Ident(word)) = (&name, &token)
                && word != "type"
                && word != "const"
            {
                name = Some(word.clone());
            }
            item.extend([token]);
        }
        let end: Token![;] = input.parse()?;
        if let Some(name) = name.filter(|name| is_type && name == "Msg") {
            let what = "the message type is generated from the handlers: remove `type Msg`";
            self.errors.push(Error::new(name.span(), what));
            return Ok(());
        }
        for attribute in attributes {
            attribute.to_tokens(&mut self.passthrough);
        }
        self.passthrough.extend(item);
        end.to_tokens(&mut self.passthrough);
        Ok(())
    }

    fn keep_hook(&mut self, head: FnHead, input: ParseStream<'_>) -> syn::Result<()> {
        for attribute in &head.attributes {
            attribute.to_tokens(&mut self.passthrough);
        }
        head.visibility.to_tokens(&mut self.passthrough);
        self.passthrough.extend(head.qualifiers);
        head.fn_token.to_tokens(&mut self.passthrough);
        head.name.to_tokens(&mut self.passthrough);
        while !input.peek(syn::token::Brace) {
            self.passthrough.extend([input.parse::<TokenTree>()?]);
        }
        self.passthrough.extend([input.parse::<TokenTree>()?]);
        Ok(())
    }

    /// Reports two handlers for one message, as far as the tokens show it. If one type is written
    /// in two ways, the compiler finds it.
    fn find_duplicates(&mut self) {
        let mut known: HashMap<(String, bool), Ident> = HashMap::new();
        let faults = &mut self.errors;
        self.handlers.retain(|handler| {
            let message = handler.message.to_token_stream().to_string();
            match known.entry((message, handler.is_request)) {
                Entry::Vacant(free) => {
                    free.insert(handler.name.clone());
                    true
                }
                Entry::Occupied(taken) => {
                    let what = format!(
                        "duplicate handler for `{}`, which `{}` handles already",
                        taken.key().0,
                        taken.get()
                    );
                    faults.push(Error::new_spanned(&handler.message, what));
                    false
                }
            }
        });
    }
}

/// Skips to the end of a function that cannot be used.
fn skip_function(input: ParseStream<'_>) -> syn::Result<()> {
    while !input.peek(syn::token::Brace) {
        input.parse::<TokenTree>()?;
    }
    input.parse::<TokenTree>().map(drop)
}
